import type { Origin } from '../../spec/index.ts';
import type { Builtin } from '../dotted-values.ts';
import { yamlWord } from '../dotted-values.ts';

/** Short names of the keys below. */
const KEYS: Readonly<Record<string, string>> = {
  model: 'model._component_',
  dir: 'checkpointer.checkpoint_dir',
  batch: 'batch_size',
  accum: 'gradient_accumulation_steps',
  rank: 'model.lora_rank',
  alpha: 'model.lora_alpha',
  attn: 'model.lora_attn_modules',
  mlp: 'model.apply_lora_to_mlp',
  head: 'model.apply_lora_to_output',
  dora: 'model.use_dora',
  quant: 'model.quantize_base',
  len: 'tokenizer.max_seq_len',
  packed: 'dataset.packed',
  optim: 'optimizer._component_',
  fused: 'optimizer.fused',
  bwd: 'optimizer_in_bwd',
  ckpt: 'enable_activation_checkpointing',
  move: 'enable_activation_offloading',
  clip: 'clip_grad_norm',
  compile: 'compile',
  loss: 'loss._component_',
  cpu: 'fsdp_cpu_offload',
  tp: 'tensor_parallel_dim',
  replicate: 'data_parallel_replicate_dim',
  teacher: 'teacher_model._component_',
  dtype: 'dtype',
};

/** What most of them say. */
const COMMON = 'batch=2 accum=8 optim=torch.optim.AdamW fused=True ckpt=True dtype=bf16 loss=CEWithChunkedOutputLoss';
const COMMON_LORA = 'rank=8 alpha=16 attn=[q_proj,v_proj,output_proj] mlp=True';

/** Configs of torchtune 0.6.1 by name, with what each says other than most. Source: recipes/configs. */
const RELEASED = `
  code_llama2/7B_full_low_memory model=code_llama2.code_llama2_7b dir=CodeLlama-7b-hf accum=1 optim=bnb.PagedAdamW bwd=True move=True
  code_llama2/7B_lora_single_device model=code_llama2.lora_code_llama2_7b dir=CodeLlama-7b-hf
  code_llama2/7B_qlora_single_device model=code_llama2.qlora_code_llama2_7b dir=CodeLlama-7b-hf
  dev/11B_lora_multi_dataset model=llama3_2_vision.lora_llama3_2_vision_11b dir=Llama-3.2-11B-Vision-Instruct batch=4 accum=1 attn=[q_proj,v_proj] mlp=False len=8192 clip=1.0 compile=True
  dev/8B_full_experimental model=llama3.llama3_8b dir=Meta-Llama-3-8B/original accum=1 ckpt=False
  gemma/2B_full model=gemma.gemma_2b dir=gemma-2b accum=1
  gemma/2B_lora model=gemma.lora_gemma_2b dir=gemma-2b batch=4 accum=1 rank=64 alpha=128
  gemma/2B_lora_single_device model=gemma.lora_gemma_2b dir=gemma-2b batch=4 rank=64 alpha=128
  gemma/2B_qlora_single_device model=gemma.qlora_gemma_2b dir=gemma-2b batch=4 rank=64 alpha=128
  gemma/7B_full model=gemma.gemma_7b dir=gemma-7b batch=1 accum=1
  gemma/7B_lora model=gemma.lora_gemma_7b dir=gemma-7b batch=4 accum=1 rank=64 alpha=128
  gemma/7B_lora_single_device model=gemma.lora_gemma_7b dir=gemma-7b batch=8
  gemma/7B_qlora_single_device model=gemma.qlora_gemma_7b dir=gemma-7b batch=4 rank=64 alpha=128
  gemma2/27B_full model=gemma2.gemma2_27b dir=gemma-2-27b batch=1 accum=1
  gemma2/27B_lora model=gemma2.lora_gemma2_27b dir=gemma-2-27b batch=4 accum=1 rank=64 alpha=128
  gemma2/27B_lora_single_device model=gemma2.lora_gemma2_27b dir=gemma-2-27b
  gemma2/27B_qlora_single_device model=gemma2.qlora_gemma2_27b dir=gemma-2-27b batch=4 rank=64 alpha=128
  gemma2/2B_full model=gemma2.gemma2_2b dir=gemma-2-2b accum=1
  gemma2/2B_lora model=gemma2.lora_gemma2_2b dir=gemma-2-2b batch=4 accum=1 rank=64 alpha=128
  gemma2/2B_lora_single_device model=gemma2.lora_gemma2_2b dir=gemma-2-2b batch=8 rank=64 alpha=128
  gemma2/2B_qlora_single_device model=gemma2.qlora_gemma2_2b dir=gemma-2-2b batch=4 rank=64 alpha=128
  gemma2/9B_full model=gemma2.gemma2_9b dir=gemma-2-9b batch=1 accum=1
  gemma2/9B_lora model=gemma2.lora_gemma2_9b dir=gemma-2-9b batch=4 accum=1 rank=64 alpha=128
  gemma2/9B_lora_single_device model=gemma2.lora_gemma2_9b dir=gemma-2-9b batch=8
  gemma2/9B_qlora_single_device model=gemma2.qlora_gemma2_9b dir=gemma-2-9b batch=4 rank=64 alpha=128
  llama2/13B_full model=llama2.llama2_13b dir=Llama-2-13b-hf accum=1
  llama2/13B_lora model=llama2.lora_llama2_13b dir=Llama-2-13b-hf head=True ckpt=False
  llama2/13B_qlora_single_device model=llama2.qlora_llama2_13b dir=Llama-2-13b-hf
  llama2/70B_lora model=llama2.lora_llama2_70b dir=Llama-2-70b-hf accum=1 rank=16 alpha=32
  llama2/70B_qlora model=llama2.qlora_llama2_70b dir=Llama-2-70b-hf accum=1 rank=16 alpha=32
  llama2/7B_full model=llama2.llama2_7b dir=Llama-2-7b-hf accum=1
  llama2/7B_full_low_memory model=llama2.llama2_7b dir=Llama-2-7b-hf accum=1 optim=bnb.PagedAdamW bwd=True move=True
  llama2/7B_lora model=llama2.lora_llama2_7b dir=Llama-2-7b-hf ckpt=False
  llama2/7B_lora_dpo model=llama2.lora_llama2_7b dir=Llama-2-7b-hf batch=4 len=1024 loss=DPOLoss
  llama2/7B_lora_dpo_single_device model=llama2.lora_llama2_7b dir=Llama-2-7b-hf batch=4 len=1024 loss=DPOLoss
  llama2/7B_lora_single_device model=llama2.lora_llama2_7b dir=Llama-2-7b-hf
  llama2/7B_qat_full model=llama2.llama2_7b dir=Llama-2-7b-hf accum=1
  llama2/7B_qlora model=llama2.qlora_llama2_7b dir=Llama-2-7b-hf
  llama2/7B_qlora_single_device model=llama2.qlora_llama2_7b dir=Llama-2-7b-hf
  llama3/70B_full model=llama3.llama3_70b dir=Meta-Llama-3-70B-Instruct accum=1 fused=False cpu=True
  llama3/70B_lora model=llama3.lora_llama3_70b dir=Meta-Llama-3-70B-Instruct accum=1 rank=16 alpha=32
  llama3/8B_dora model=llama3.lora_llama3_8b dir=Meta-Llama-3-8B-Instruct/original accum=1 dora=True ckpt=False
  llama3/8B_dora_single_device model=llama3.lora_llama3_8b dir=Meta-Llama-3-8B-Instruct/original dora=True
  llama3/8B_full model=llama3.llama3_8b dir=Meta-Llama-3-8B-Instruct/original accum=1
  llama3/8B_full_single_device model=llama3.llama3_8b dir=Meta-Llama-3-8B-Instruct/original accum=1 optim=bnb.PagedAdamW8bit bwd=True
  llama3/8B_lora model=llama3.lora_llama3_8b dir=Meta-Llama-3-8B-Instruct/original ckpt=False
  llama3/8B_lora_single_device model=llama3.lora_llama3_8b dir=Meta-Llama-3-8B-Instruct/original
  llama3/8B_qat_full model=llama3.llama3_8b dir=Meta-Llama-3-8B-Instruct/original accum=1
  llama3/8B_qat_lora model=llama3.lora_llama3_8b dir=Meta-Llama-3-8B-Instruct/original ckpt=False
  llama3/8B_qdora_single_device model=llama3.lora_llama3_8b dir=Meta-Llama-3-8B-Instruct/original dora=True quant=True
  llama3/8B_qlora_single_device model=llama3.qlora_llama3_8b dir=Meta-Llama-3-8B-Instruct/original
  llama3_1/405B_qlora model=llama3_1.qlora_llama3_1_405b dir=Meta-Llama-3.1-405B-Instruct batch=1 rank=16 alpha=32
  llama3_1/70B_full model=llama3_1.llama3_1_70b dir=Meta-Llama-3.1-70B-Instruct accum=1 fused=False cpu=True
  llama3_1/70B_lora model=llama3_1.lora_llama3_1_70b dir=Meta-Llama-3.1-70B-Instruct accum=1 rank=16 alpha=32
  llama3_1/8B_full model=llama3_1.llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct accum=1
  llama3_1/8B_full_dpo model=llama3_1.llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct batch=4 len=1024 loss=DPOLoss
  llama3_1/8B_full_single_device model=llama3_1.llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct accum=1 optim=bnb.PagedAdamW8bit bwd=True
  llama3_1/8B_lora model=llama3_1.lora_llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct ckpt=False
  llama3_1/8B_lora_dpo model=llama3_1.lora_llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct batch=4 len=1024 loss=DPOLoss
  llama3_1/8B_lora_dpo_single_device model=llama3_1.lora_llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct batch=4 len=1024 loss=DPOLoss
  llama3_1/8B_lora_single_device model=llama3_1.lora_llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct
  llama3_1/8B_qat_lora model=llama3_1.lora_llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct ckpt=False
  llama3_1/8B_qlora_single_device model=llama3_1.qlora_llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct
  llama3_2/1B_full model=llama3_2.llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 ckpt=False
  llama3_2/1B_full_single_device model=llama3_2.llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 accum=1 optim=bnb.PagedAdamW8bit bwd=True ckpt=False
  llama3_2/1B_lora model=llama3_2.lora_llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 rank=64 alpha=128 ckpt=False
  llama3_2/1B_lora_single_device model=llama3_2.lora_llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 rank=64 alpha=128 ckpt=False
  llama3_2/1B_qat_lora model=llama3_2.lora_llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 rank=64 alpha=128 ckpt=False
  llama3_2/1B_qlora_single_device model=llama3_2.qlora_llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 rank=64 alpha=128 ckpt=False
  llama3_2/3B_full model=llama3_2.llama3_2_3b dir=Llama-3.2-3B-Instruct batch=4
  llama3_2/3B_full_single_device model=llama3_2.llama3_2_3b dir=Llama-3.2-3B-Instruct batch=4 accum=1 optim=bnb.PagedAdamW8bit bwd=True
  llama3_2/3B_lora model=llama3_2.lora_llama3_2_3b dir=Llama-3.2-3B-Instruct batch=4 rank=64 alpha=128 ckpt=False
  llama3_2/3B_lora_single_device model=llama3_2.lora_llama3_2_3b dir=Llama-3.2-3B-Instruct batch=4 rank=64 alpha=128
  llama3_2/3B_qat_lora model=llama3_2.lora_llama3_2_3b dir=Llama-3.2-3B-Instruct batch=4 rank=64 alpha=128 ckpt=False
  llama3_2/3B_qlora_single_device model=llama3_2.qlora_llama3_2_3b dir=Llama-3.2-3B-Instruct batch=4 rank=64 alpha=128
  llama3_2/8B_to_1B_KD_lora_distributed model=llama3_2.lora_llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 rank=64 alpha=128 ckpt=False teacher=llama3_1.llama3_1_8b
  llama3_2/8B_to_1B_KD_lora_single_device model=llama3_2.lora_llama3_2_1b dir=Llama-3.2-1B-Instruct batch=4 rank=64 alpha=128 ckpt=False teacher=llama3_1.llama3_1_8b
  llama3_2_vision/11B_full model=llama3_2_vision.llama3_2_vision_11b dir=Llama-3.2-11B-Vision-Instruct len=8192 clip=1.0
  llama3_2_vision/11B_full_single_device model=llama3_2_vision.llama3_2_vision_11b dir=Llama-3.2-11B-Vision-Instruct len=8192 optim=bnb.PagedAdamW8bit clip=1.0
  llama3_2_vision/11B_lora model=llama3_2_vision.lora_llama3_2_vision_11b dir=Llama-3.2-11B-Vision-Instruct len=8192 clip=1.0
  llama3_2_vision/11B_lora_single_device model=llama3_2_vision.lora_llama3_2_vision_11b dir=Llama-3.2-11B-Vision-Instruct len=8192 clip=1.0
  llama3_2_vision/11B_qlora model=llama3_2_vision.qlora_llama3_2_vision_11b dir=Llama-3.2-11B-Vision-Instruct len=8192 clip=1.0
  llama3_2_vision/11B_qlora_single_device model=llama3_2_vision.qlora_llama3_2_vision_11b dir=Llama-3.2-11B-Vision-Instruct len=8192 clip=1.0
  llama3_2_vision/90B_full model=llama3_2_vision.llama3_2_vision_90b dir=Llama-3.2-90B-Vision-Instruct len=8192 clip=1.0
  llama3_2_vision/90B_lora model=llama3_2_vision.lora_llama3_2_vision_90b dir=Llama-3.2-90B-Vision-Instruct len=8192 clip=1.0
  llama3_2_vision/90B_qlora model=llama3_2_vision.qlora_llama3_2_vision_90b dir=Llama-3.2-90B-Vision-Instruct len=8192 clip=1.0
  llama3_3/70B_full model=llama3_3.llama3_3_70b dir=Llama-3.3-70B-Instruct accum=1 fused=False cpu=True
  llama3_3/70B_full_multinode model=llama3_3.llama3_3_70b dir=Llama-3.3-70B-Instruct batch=4 accum=1 len=1024 packed=True compile=True
  llama3_3/70B_lora model=llama3_3.lora_llama3_3_70b dir=Llama-3.3-70B-Instruct accum=1 rank=16 alpha=32
  llama3_3/70B_qlora model=llama3_3.qlora_llama3_3_70b dir=Llama-3.3-70B-Instruct accum=1 rank=16 alpha=32
  mistral/7B_full model=mistral.mistral_7b dir=Mistral-7B-v0.1 accum=1
  mistral/7B_full_low_memory model=mistral.mistral_7b dir=Mistral-7B-v0.1 accum=1 optim=bnb.PagedAdamW bwd=True move=True
  mistral/7B_lora model=mistral.lora_mistral_7b dir=Mistral-7B-v0.1 batch=4 accum=1 rank=64 head=True
  mistral/7B_lora_single_device model=mistral.lora_mistral_7b dir=Mistral-7B-v0.1 batch=4 rank=64 head=True
  mistral/7B_qlora_single_device model=mistral.qlora_mistral_7b dir=Mistral-7B-v0.1 batch=4 rank=64
  phi3/mini_full model=phi3.phi3_mini dir=Phi-3-mini-4k-instruct
  phi3/mini_full_low_memory model=phi3.phi3_mini dir=Phi-3-mini-4k-instruct accum=1 optim=bnb.PagedAdamW bwd=True move=True
  phi3/mini_lora model=phi3.lora_phi3_mini dir=Phi-3-mini-4k-instruct ckpt=False
  phi3/mini_lora_single_device model=phi3.lora_phi3_mini dir=Phi-3-mini-4k-instruct
  phi3/mini_qlora_single_device model=phi3.qlora_phi3_mini dir=Phi-3-mini-4k-instruct
  phi4/14B_full model=phi4.phi4_14b dir=phi-4
  phi4/14B_full_low_memory model=phi4.phi4_14b dir=phi-4 accum=1 optim=bnb.PagedAdamW bwd=True move=True
  phi4/14B_lora model=phi4.lora_phi4_14b dir=phi-4 ckpt=False
  phi4/14B_lora_single_device model=phi4.lora_phi4_14b dir=phi-4
  phi4/14B_qlora_single_device model=phi4.qlora_phi4_14b dir=phi-4
  qwen2/0.5B_full model=qwen2.qwen2_0_5b dir=Qwen2-0.5B-Instruct ckpt=False
  qwen2/0.5B_full_single_device model=qwen2.qwen2_0_5b dir=Qwen2-0.5B-Instruct
  qwen2/0.5B_lora model=qwen2.lora_qwen2_0_5b dir=Qwen2-0.5B-Instruct batch=4 rank=32 alpha=64
  qwen2/0.5B_lora_single_device model=qwen2.lora_qwen2_0_5b dir=Qwen2-0.5B-Instruct batch=4 rank=32 alpha=64
  qwen2/1.5B_full model=qwen2.qwen2_1_5b dir=Qwen2-1.5B-Instruct accum=1 ckpt=False
  qwen2/1.5B_full_single_device model=qwen2.qwen2_1_5b dir=Qwen2-1.5B-Instruct accum=1 optim=bnb.PagedAdamW bwd=True
  qwen2/1.5B_lora model=qwen2.lora_qwen2_1_5b dir=Qwen2-1.5B-Instruct rank=32 alpha=64
  qwen2/1.5B_lora_single_device model=qwen2.lora_qwen2_1_5b dir=Qwen2-1.5B-Instruct rank=32 alpha=64
  qwen2/1.5_to_0.5B_KD_lora_distributed model=qwen2.lora_qwen2_0_5b dir=Qwen2-0.5B-Instruct batch=8 rank=32 alpha=64 fused= ckpt=False teacher=qwen2.qwen2_1_5b
  qwen2/1.5_to_0.5B_KD_lora_single_device model=qwen2.lora_qwen2_0_5b dir=Qwen2-0.5B-Instruct batch=8 rank=32 alpha=64 fused= ckpt=False teacher=qwen2.qwen2_1_5b
  qwen2/7B_full model=qwen2.qwen2_7b dir=Qwen2-7B-Instruct
  qwen2/7B_full_single_device model=qwen2.qwen2_7b dir=Qwen2-7B-Instruct accum=1 optim=bnb.PagedAdamW bwd=True
  qwen2/7B_lora model=qwen2.lora_qwen2_7b dir=Qwen2-7B-Instruct ckpt=False
  qwen2/7B_lora_single_device model=qwen2.lora_qwen2_7b dir=Qwen2-7B-Instruct
  qwen2_5/0.5B_full model=qwen2_5.qwen2_5_0_5b dir=Qwen2.5-0.5B-Instruct ckpt=False
  qwen2_5/0.5B_full_single_device model=qwen2_5.qwen2_5_0_5b dir=Qwen2.5-0.5B-Instruct ckpt=False
  qwen2_5/0.5B_lora model=qwen2_5.lora_qwen2_5_0_5b dir=Qwen2.5-0.5B-Instruct rank=32 alpha=64 ckpt=False
  qwen2_5/0.5B_lora_single_device model=qwen2_5.lora_qwen2_5_0_5b dir=Qwen2.5-0.5B-Instruct rank=32 alpha=64 ckpt=False
  qwen2_5/1.5B_full model=qwen2_5.qwen2_5_1_5b_instruct dir=Qwen2.5-1.5B-Instruct accum=1
  qwen2_5/1.5B_full_single_device model=qwen2_5.qwen2_5_1_5b_instruct dir=Qwen2.5-1.5B-Instruct batch=4 accum=1 optim=bnb.PagedAdamW bwd=True
  qwen2_5/1.5B_lora model=qwen2_5.lora_qwen2_5_1_5b_instruct dir=Qwen2.5-1.5B-Instruct rank=32 alpha=64 ckpt=False
  qwen2_5/1.5B_lora_single_device model=qwen2_5.lora_qwen2_5_1_5b_instruct dir=Qwen2.5-1.5B-Instruct rank=32 alpha=64 ckpt=False
  qwen2_5/14B_lora_single_device model=qwen2_5.lora_qwen2_5_14b_instruct dir=Qwen2.5-14B-Instruct
  qwen2_5/32B_lora model=qwen2_5.lora_qwen2_5_32b_instruct dir=Qwen2.5-32B-Instruct ckpt=False
  qwen2_5/3B_full model=qwen2_5.qwen2_5_3b dir=Qwen2.5-3B-Instruct
  qwen2_5/3B_full_single_device model=qwen2_5.qwen2_5_3b dir=Qwen2.5-3B-Instruct accum=1 optim=bnb.PagedAdamW bwd=True
  qwen2_5/3B_lora model=qwen2_5.lora_qwen2_5_3b dir=Qwen2.5-3B-Instruct ckpt=False
  qwen2_5/3B_lora_single_device model=qwen2_5.lora_qwen2_5_3b dir=Qwen2.5-3B-Instruct
  qwen2_5/72B_lora model=qwen2_5.lora_qwen2_5_72b_instruct dir=Qwen2.5-72B-Instruct accum=1
  qwen2_5/7B_full model=qwen2_5.qwen2_5_7b_instruct dir=Qwen2.5-7B-Instruct
  qwen2_5/7B_full_single_device model=qwen2_5.qwen2_5_7b_instruct dir=Qwen2.5-7B-Instruct accum=1 optim=bnb.PagedAdamW bwd=True
  qwen2_5/7B_lora model=qwen2_5.lora_qwen2_5_7b_instruct dir=Qwen2.5-7B-Instruct ckpt=False
  qwen2_5/7B_lora_single_device model=qwen2_5.lora_qwen2_5_7b_instruct dir=Qwen2.5-7B-Instruct
`;

/** Those that only the development branch has. */
const LATER = `
  dev/3B_full_grpo model=llama3_2.llama3_2_3b batch=1 clip=1.0 loss=GRPOSimpleLoss
  dev/3B_sft_for_grpo model=llama3_2.llama3_2_3b dir=Llama-3.2-3B accum=1 loss=LinearCrossEntropyLoss
  dev/qwen3B_async_grpo model=qwen2_5.qwen2_5_3b len=1024 fused=
  dev/qwen3B_sync_grpo model=qwen2_5.qwen2_5_3b batch=1 len=1024 clip=1.0 loss=GRPOSimpleLoss
  llama2/1B_qat_single_device model=llama2.llama2 dir=TinyLlama_v1.1 batch=1 accum=1 len=2048 optim=bnb.PagedAdamW bwd=True loss=LinearCrossEntropyLoss
  llama3_1/8B_qat_full model=llama3_1.llama3_1_8b dir=Meta-Llama-3.1-8B-Instruct accum=1 loss=LinearCrossEntropyLoss
  llama3_2/3B_qat_full model=llama3_2.llama3_2_3b dir=Llama-3.2-3B-Instruct batch=4 loss=LinearCrossEntropyLoss
  llama4/maverick_17B_128E_full model=llama4.llama4_maverick_17b_128e dir=Llama-4-Maverick-17B-128E-Instruct batch=1 accum=1 fused=False loss=LinearCrossEntropyLoss cpu=True tp=8
  llama4/scout_17B_16E_full model=llama4.llama4_scout_17b_16e dir=Llama-4-Scout-17B-16E-Instruct batch=1 accum=1 fused=False loss=LinearCrossEntropyLoss cpu=True tp=2
  llama4/scout_17B_16E_lora model=llama4.lora_llama4_scout_17b_16e dir=Llama-4-Scout-17B-16E-Instruct accum=1 rank=16 alpha=32 fused=False loss=LinearCrossEntropyLoss
  qwen2_5/1.5B_qat_single_device model=qwen2_5.qwen2_5_1_5b_instruct dir=Qwen2.5-1.5B-Instruct batch=1 accum=1 optim=bnb.PagedAdamW bwd=True loss=LinearCrossEntropyLoss
  qwen2_5/14B_to_7B_KD_lora_single_device model=qwen2_5.lora_qwen2_5_7b dir=Qwen2.5-7B-Instruct rank=64 alpha=128 teacher=qwen2_5.lora_qwen2_5_14b_instruct
  qwen2_5/3B_qat_single_device model=qwen2_5.qwen2_5_3b dir=Qwen2.5-3B-Instruct accum=1 optim=bnb.PagedAdamW bwd=True loss=LinearCrossEntropyLoss
  qwen3/0.6B_full model=qwen3.qwen3_0_6b_instruct dir=Qwen3-0.6B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/0.6B_full_single_device model=qwen3.qwen3_0_6b_instruct dir=Qwen3-0.6B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/0.6B_lora model=qwen3.lora_qwen3_0_6b_instruct dir=Qwen3-0.6B rank=32 alpha=64 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/0.6B_lora_single_device model=qwen3.lora_qwen3_0_6b_instruct dir=Qwen3-0.6B rank=32 alpha=64 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/0.6B_qat_full model=qwen3.qwen3_0_6b_instruct dir=Qwen3-0.6B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/0.6B_qat_lora model=qwen3.lora_qwen3_0_6b_instruct dir=Qwen3-0.6B rank=32 alpha=64 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/1.7B_full model=qwen3.qwen3_1_7b_instruct dir=Qwen3-1.7B accum=1 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/1.7B_full_single_device model=qwen3.qwen3_1_7b_instruct dir=Qwen3-1.7B batch=4 accum=1 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/1.7B_lora model=qwen3.lora_qwen3_1_7b_instruct dir=Qwen3-1.7B rank=32 alpha=64 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/1.7B_lora_single_device model=qwen3.lora_qwen3_1_7b_instruct dir=Qwen3-1.7B rank=32 alpha=64 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/1.7B_qat_full model=qwen3.qwen3_1_7b_instruct dir=Qwen3-1.7B accum=1 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/1.7B_qat_lora model=qwen3.lora_qwen3_1_7b_instruct dir=Qwen3-1.7B rank=32 alpha=64 ckpt=False loss=LinearCrossEntropyLoss
  qwen3/14B_lora_single_device model=qwen3.lora_qwen3_14b_instruct dir=Qwen3-14B loss=LinearCrossEntropyLoss
  qwen3/14B_to_8B_KD_lora_single_device model=qwen3.lora_qwen3_8b_base dir=Qwen3-8B rank=64 alpha=128 teacher=qwen3.qwen3_14b_instruct
  qwen3/32B_lora model=qwen3.lora_qwen3_32b dir=Qwen3-32B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/32B_qat_lora model=qwen3.lora_qwen3_32b dir=Qwen3-32B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/4B_full model=qwen3.qwen3_4b_instruct dir=Qwen3-4B loss=LinearCrossEntropyLoss
  qwen3/4B_full_single_device model=qwen3.qwen3_4b_instruct dir=Qwen3-4B accum=1 loss=LinearCrossEntropyLoss
  qwen3/4B_lora model=qwen3.lora_qwen3_4b_instruct dir=Qwen3-4B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/4B_lora_single_device model=qwen3.lora_qwen3_4b_instruct dir=Qwen3-4B loss=LinearCrossEntropyLoss
  qwen3/4B_qat_full model=qwen3.qwen3_4b_instruct dir=Qwen3-4B loss=LinearCrossEntropyLoss
  qwen3/4B_qat_lora model=qwen3.lora_qwen3_4b_instruct dir=Qwen3-4B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/8B_full model=qwen3.qwen3_8b_instruct dir=Qwen3-8B loss=LinearCrossEntropyLoss
  qwen3/8B_full_single_device model=qwen3.qwen3_8b_instruct dir=Qwen3-8B accum=1 optim=bnb.PagedAdamW bwd=True loss=LinearCrossEntropyLoss
  qwen3/8B_lora model=qwen3.lora_qwen3_8b_instruct dir=Qwen3-8B ckpt=False loss=LinearCrossEntropyLoss
  qwen3/8B_lora_single_device model=qwen3.lora_qwen3_8b_instruct dir=Qwen3-8B loss=LinearCrossEntropyLoss
  qwen3/8B_qat_full model=qwen3.qwen3_8b_instruct dir=Qwen3-8B loss=LinearCrossEntropyLoss
  qwen3/8B_qat_lora model=qwen3.lora_qwen3_8b_instruct dir=Qwen3-8B ckpt=False loss=LinearCrossEntropyLoss
`;

/** The keys that bear on memory of a config that comes with torchtune; undefined: it has none of that name. */
export function builtinConfig(name: string): ReadonlyMap<string, Builtin> | undefined {
  const released = rowOf(RELEASED, name);
  const row = released ?? rowOf(LATER, name);
  if (row === undefined) return undefined;
  const origin: Origin = {
    kind: 'default',
    tool: `torchtune ${name}`,
    version: released === undefined ? '0.7' : '0.6.1',
  };
  const lora = /model=\S*\bq?lora_/.test(row) ? `${COMMON_LORA} ` : '';
  const said = `${COMMON} ${lora}${row}`.split(' ').filter((word) => word !== '');
  const words = new Map(said.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]));
  // Optimizers of bitsandbytes take no such word, so their configs have none; nothing after `=`: the config lacks the key.
  if (words.get('optim')!.startsWith('bnb.')) words.delete('fused');
  return new Map(
    [...words].flatMap(([key, text]) => (text === '' ? [] : [[KEYS[key]!, { value: inFull(key, text), origin }]])),
  );
}

function rowOf(table: string, name: string): string | undefined {
  const row = table.split('\n').find((line) => line.trimStart().startsWith(`${name} `));
  return row?.trim().slice(name.length + 1);
}

function inFull(key: string, text: string): Builtin['value'] {
  switch (key) {
    case 'model':
    case 'teacher':
      return `torchtune.models.${text}`;
    case 'dir':
      return `/tmp/${text}`;
    case 'loss':
      return text === 'DPOLoss' ? `torchtune.rlhf.loss.${text}` : `torchtune.modules.loss.${text}`;
    case 'optim':
      return text.replace(/^bnb\./, 'bitsandbytes.optim.');
    default:
      return yamlWord(text);
  }
}
