# bash completion for memplan, printed by "memplan completion bash"
_memplan() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		COMPREPLY=($(compgen -W 'predict explain whatif check list schema completion help' -- "$cur"))
		return
	fi
	case ${COMP_WORDS[1]} in
	predict)
		case $prev in
		--dump)
			COMPREPLY=($(compgen -W 'graph' -- "$cur"))
			return ;;
		--set)
			compopt -o nospace
			COMPREPLY=($(compgen -W 'schema= title= framework= model= hardware.gpu= hardware.gpus= hardware.gpus_per_node= hardware.host_memory= hardware.capacity= hardware.headroom= parallel.tensor= parallel.sequence= parallel.pipeline= parallel.virtual= parallel.layers= parallel.schedule= parallel.context= parallel.ulysses= parallel.expert= parallel.expert_tensor= parallel.data.shard= parallel.data.replicate= parallel.zero= parallel.reshard_after_forward= parallel.units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.cpu_offload= parallel.no_sync= parallel.bucket_mb= parallel.bucket_view= precision.params= precision.compute= precision.gradients= precision.reduce= precision.master= precision.optimizer= precision.fp8= precision.autocast= precision.grad_scaler= optimizer.name= optimizer.implementation= optimizer.momentum= optimizer.weight_decay= optimizer.amsgrad= train.micro_batch= train.seq_len= train.gradient_accumulation= train.global_batch= train.clip_grad_norm= train.zero_grad= train.hold_logits= train.labels= train.position_ids= train.padding= train.packed= train.lora.rank= train.lora.alpha= train.lora.dropout= train.lora.targets= train.lora.dtype= train.lora.base= train.freeze= kernels.attention= kernels.rms_norm= kernels.layer_norm= kernels.rope= kernels.mlp= kernels.experts= kernels.loss= memory.recompute.granularity= memory.recompute.reentrant= memory.recompute.save= memory.recompute.ops= memory.recompute.layers= memory.recompute.every= memory.chunk_loss.chunks= memory.chunk_loss.chunk_size= memory.chunk_loss.checkpoint= memory.optimizer_in_backward= allocator.expandable_segments= allocator.max_split_size_mb=' -- "$cur"))
			return ;;
		--format)
			COMPREPLY=($(compgen -W 'text json csv tsv md' -- "$cur"))
			return ;;
		--units)
			COMPREPLY=($(compgen -W 'GiB GB MiB B' -- "$cur"))
			return ;;
		--color)
			COMPREPLY=($(compgen -W 'auto always never' -- "$cur"))
			return ;;
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--rank --top --strict --exit-zero --dump --set --format --output --quiet --units --color --help' -- "$cur")) ;;
		esac ;;
	explain)
		case $prev in
		--set)
			compopt -o nospace
			COMPREPLY=($(compgen -W 'schema= title= framework= model= hardware.gpu= hardware.gpus= hardware.gpus_per_node= hardware.host_memory= hardware.capacity= hardware.headroom= parallel.tensor= parallel.sequence= parallel.pipeline= parallel.virtual= parallel.layers= parallel.schedule= parallel.context= parallel.ulysses= parallel.expert= parallel.expert_tensor= parallel.data.shard= parallel.data.replicate= parallel.zero= parallel.reshard_after_forward= parallel.units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.cpu_offload= parallel.no_sync= parallel.bucket_mb= parallel.bucket_view= precision.params= precision.compute= precision.gradients= precision.reduce= precision.master= precision.optimizer= precision.fp8= precision.autocast= precision.grad_scaler= optimizer.name= optimizer.implementation= optimizer.momentum= optimizer.weight_decay= optimizer.amsgrad= train.micro_batch= train.seq_len= train.gradient_accumulation= train.global_batch= train.clip_grad_norm= train.zero_grad= train.hold_logits= train.labels= train.position_ids= train.padding= train.packed= train.lora.rank= train.lora.alpha= train.lora.dropout= train.lora.targets= train.lora.dtype= train.lora.base= train.freeze= kernels.attention= kernels.rms_norm= kernels.layer_norm= kernels.rope= kernels.mlp= kernels.experts= kernels.loss= memory.recompute.granularity= memory.recompute.reentrant= memory.recompute.save= memory.recompute.ops= memory.recompute.layers= memory.recompute.every= memory.chunk_loss.chunks= memory.chunk_loss.chunk_size= memory.chunk_loss.checkpoint= memory.optimizer_in_backward= allocator.expandable_segments= allocator.max_split_size_mb=' -- "$cur"))
			return ;;
		--format)
			COMPREPLY=($(compgen -W 'text json csv tsv md' -- "$cur"))
			return ;;
		--units)
			COMPREPLY=($(compgen -W 'GiB GB MiB B' -- "$cur"))
			return ;;
		--color)
			COMPREPLY=($(compgen -W 'auto always never' -- "$cur"))
			return ;;
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--formula --why --top --set --format --output --units --color --help' -- "$cur")) ;;
		esac ;;
	whatif)
		case $prev in
		--set)
			compopt -o nospace
			COMPREPLY=($(compgen -W 'schema= title= framework= model= hardware.gpu= hardware.gpus= hardware.gpus_per_node= hardware.host_memory= hardware.capacity= hardware.headroom= parallel.tensor= parallel.sequence= parallel.pipeline= parallel.virtual= parallel.layers= parallel.schedule= parallel.context= parallel.ulysses= parallel.expert= parallel.expert_tensor= parallel.data.shard= parallel.data.replicate= parallel.zero= parallel.reshard_after_forward= parallel.units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.cpu_offload= parallel.no_sync= parallel.bucket_mb= parallel.bucket_view= precision.params= precision.compute= precision.gradients= precision.reduce= precision.master= precision.optimizer= precision.fp8= precision.autocast= precision.grad_scaler= optimizer.name= optimizer.implementation= optimizer.momentum= optimizer.weight_decay= optimizer.amsgrad= train.micro_batch= train.seq_len= train.gradient_accumulation= train.global_batch= train.clip_grad_norm= train.zero_grad= train.hold_logits= train.labels= train.position_ids= train.padding= train.packed= train.lora.rank= train.lora.alpha= train.lora.dropout= train.lora.targets= train.lora.dtype= train.lora.base= train.freeze= kernels.attention= kernels.rms_norm= kernels.layer_norm= kernels.rope= kernels.mlp= kernels.experts= kernels.loss= memory.recompute.granularity= memory.recompute.reentrant= memory.recompute.save= memory.recompute.ops= memory.recompute.layers= memory.recompute.every= memory.chunk_loss.chunks= memory.chunk_loss.chunk_size= memory.chunk_loss.checkpoint= memory.optimizer_in_backward= allocator.expandable_segments= allocator.max_split_size_mb=' -- "$cur"))
			return ;;
		--format)
			COMPREPLY=($(compgen -W 'text json csv tsv md' -- "$cur"))
			return ;;
		--units)
			COMPREPLY=($(compgen -W 'GiB GB MiB B' -- "$cur"))
			return ;;
		--color)
			COMPREPLY=($(compgen -W 'auto always never' -- "$cur"))
			return ;;
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--try --all --combine --advise --set --format --output --quiet --units --color --help' -- "$cur")) ;;
		esac ;;
	check)
		case $prev in
		--set)
			compopt -o nospace
			COMPREPLY=($(compgen -W 'schema= title= framework= model= hardware.gpu= hardware.gpus= hardware.gpus_per_node= hardware.host_memory= hardware.capacity= hardware.headroom= parallel.tensor= parallel.sequence= parallel.pipeline= parallel.virtual= parallel.layers= parallel.schedule= parallel.context= parallel.ulysses= parallel.expert= parallel.expert_tensor= parallel.data.shard= parallel.data.replicate= parallel.zero= parallel.reshard_after_forward= parallel.units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.cpu_offload= parallel.no_sync= parallel.bucket_mb= parallel.bucket_view= precision.params= precision.compute= precision.gradients= precision.reduce= precision.master= precision.optimizer= precision.fp8= precision.autocast= precision.grad_scaler= optimizer.name= optimizer.implementation= optimizer.momentum= optimizer.weight_decay= optimizer.amsgrad= train.micro_batch= train.seq_len= train.gradient_accumulation= train.global_batch= train.clip_grad_norm= train.zero_grad= train.hold_logits= train.labels= train.position_ids= train.padding= train.packed= train.lora.rank= train.lora.alpha= train.lora.dropout= train.lora.targets= train.lora.dtype= train.lora.base= train.freeze= kernels.attention= kernels.rms_norm= kernels.layer_norm= kernels.rope= kernels.mlp= kernels.experts= kernels.loss= memory.recompute.granularity= memory.recompute.reentrant= memory.recompute.save= memory.recompute.ops= memory.recompute.layers= memory.recompute.every= memory.chunk_loss.chunks= memory.chunk_loss.chunk_size= memory.chunk_loss.checkpoint= memory.optimizer_in_backward= allocator.expandable_segments= allocator.max_split_size_mb=' -- "$cur"))
			return ;;
		--format)
			COMPREPLY=($(compgen -W 'text json csv tsv md' -- "$cur"))
			return ;;
		--units)
			COMPREPLY=($(compgen -W 'GiB GB MiB B' -- "$cur"))
			return ;;
		--color)
			COMPREPLY=($(compgen -W 'auto always never' -- "$cur"))
			return ;;
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--origin --set --format --output --quiet --units --color --help' -- "$cur")) ;;
		esac ;;
	list)
		case $prev in
		--format)
			COMPREPLY=($(compgen -W 'text json csv tsv md' -- "$cur"))
			return ;;
		--units)
			COMPREPLY=($(compgen -W 'GiB GB MiB B' -- "$cur"))
			return ;;
		--color)
			COMPREPLY=($(compgen -W 'auto always never' -- "$cur"))
			return ;;
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--mdoc --format --output --units --color --help' -- "$cur")) ;;
		*) COMPREPLY=($(compgen -W 'models gpus kernels optimizations' -- "$cur")) ;;
		esac ;;
	schema)
		case $prev in
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--mdoc --output --help' -- "$cur")) ;;
		esac ;;
	completion)
		case $prev in
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--output --help' -- "$cur")) ;;
		*) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
		esac ;;
	help)
		case $prev in
		esac
		case $cur in
		-*) COMPREPLY=($(compgen -W '--mdoc --help' -- "$cur")) ;;
		*) COMPREPLY=($(compgen -W 'predict explain whatif check list schema completion help' -- "$cur")) ;;
		esac ;;
	esac
}
complete -o default -F _memplan memplan
