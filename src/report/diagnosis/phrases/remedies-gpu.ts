import type { RemedyId } from '../../../diagnosis/index.ts';
import type { Phrase } from './phrase.ts';

/** Remedies for device memory. Keys are transformers' own; other trainers call them alike. */
export const GPU_REMEDIES = {
  'micro-batch': {
    en: 'halve per_device_train_batch_size and double gradient_accumulation_steps: the same global batch, about half the activations',
    zh: 'per_device_train_batch_size（每卡批大小）减半，gradient_accumulation_steps（累积步数）加倍：全局批大小不变，激活显存约减半',
  },
  'gradient-checkpointing': {
    en: 'gradient_checkpointing: true (with LoRA: use_reentrant: false, or enable_input_require_grads): activations of one layer at a time, about a quarter more time',
    zh: '开启 gradient_checkpointing（梯度检查点；用 LoRA 时设 use_reentrant: false 或 enable_input_require_grads）：激活只保留一层，约多花四分之一时间',
  },
  'fused-loss': {
    en: 'a chunked or fused loss (use_liger_kernel: true): logits of every token over the whole vocabulary are never held at once',
    zh: '使用分块或融合损失（use_liger_kernel: true）：不必一次保存所有 token 对整个词表的 logits',
  },
  'shorter-rows': {
    en: 'shorter rows (max_length, cutoff_len, sequence_len): the peak is at a full row. This changes what is learned',
    zh: '缩短序列（max_length、cutoff_len、sequence_len）：峰值出现在最长的行。这会改变训练数据',
  },
  lora: {
    en: 'LoRA instead of full fine-tuning: no gradients and no optimizer states for the base model',
    zh: '用 LoRA 代替全参数微调：基座模型不需要梯度和优化器状态',
  },
  qlora: {
    en: 'QLoRA (load_in_4bit): the frozen base takes about a quarter of its 16-bit size',
    zh: 'QLoRA（load_in_4bit）：冻结的基座约为 16 位时的四分之一',
  },
  shard: {
    en: 'shard over the cards (FSDP full_shard, DeepSpeed ZeRO 2 or 3), so that no card holds all of it',
    zh: '跨卡切分（FSDP full_shard、DeepSpeed ZeRO 2/3），单卡不再保存全部状态',
  },
  'optimizer-8bit': {
    en: 'an 8-bit optimizer (optim: adamw_bnb_8bit): states take 2 bytes a parameter instead of 8. A smaller batch cannot help: the states do not depend on it',
    zh: '8 位优化器（optim: adamw_bnb_8bit）：每个参数的状态从 8 字节降到 2 字节。减小批大小没有用：状态与批大小无关',
  },
  'optimizer-offload': {
    en: 'optimizer states in host RAM (optim: paged_adamw_8bit, or ZeRO offload), where the host has the room',
    zh: '把优化器状态放到主机内存（optim: paged_adamw_8bit 或 ZeRO offload），前提是内存够用',
  },
  'long-samples': {
    en: 'many steps went well before: the longest rows decide. Cut or drop the longest samples, or group rows by length (group_by_length)',
    zh: '此前多步都正常：由最长的样本决定。截断或去掉最长样本，或按长度分组（group_by_length）',
  },
  'find-growth': {
    en: 'see whether memory grows: print torch.cuda.max_memory_allocated() every few steps. If it climbs, smaller settings only put the end off',
    zh: '检查显存是否增长：每隔几步打印 torch.cuda.max_memory_allocated()。若持续上升，调小设置只是推迟崩溃',
  },
  'detach-kept': {
    en: 'find what keeps tensors from step to step: losses or outputs in a list without .item() or .detach(), hooks, growing caches',
    zh: '找出跨步保留的张量：列表中没有 .item()/.detach() 的损失或输出、钩子、不断增长的缓存',
  },
  'larger-card': {
    en: 'a GPU with more memory, when the settings above are not wanted or not enough',
    zh: '若以上设置都不可行或不够，再换显存更大的显卡',
  },
  'load-own-device': {
    en: 'load every rank onto its own device, or on the CPU first (map_location="cpu", device_map={"": local_rank}); update accelerate and peft where the frames are theirs',
    zh: '每个 rank 加载到自己的显卡，或先加载到 CPU（map_location="cpu"、device_map={"": local_rank}）；若出错位置在 accelerate/peft，请升级它们',
  },
  'load-sixteen-bit': {
    en: 'load in 16 bits (dtype: bfloat16, or auto): half of fp32. The batch plays no part while loading',
    zh: '以 16 位加载（dtype: bfloat16 或 auto）：是 fp32 的一半。加载阶段与批大小无关',
  },
  'load-sharded': {
    en: 'load in shards (fsdp cpu_ram_efficient_loading, ZeRO 3 init): no card holds the whole model. ZeRO 3 does not shard 4-bit weights while loading',
    zh: '分片加载（fsdp 的 cpu_ram_efficient_loading、ZeRO 3 初始化）：单卡不必放下整个模型。注意 ZeRO 3 加载时不切分 4 位权重',
  },
  'resume-on-cpu': {
    en: 'load the checkpoint on the CPU and then copy (torch.load(..., map_location="cpu")): optimizer states must not land on the card twice; update accelerate or the trainer',
    zh: '先把检查点加载到 CPU 再拷贝（torch.load(..., map_location="cpu")），避免优化器状态在显卡上出现两份；升级 accelerate 或训练框架',
  },
  'drop-after-load': {
    en: 'drop what loading left behind before the first step: del the loaded state, gc.collect(), torch.cuda.empty_cache()',
    zh: '第一步之前释放加载残留：del 已加载的状态、gc.collect()、torch.cuda.empty_cache()',
  },
  'eval-batch': {
    en: 'per_device_eval_batch_size: 1. Training is fine as it is',
    zh: 'per_device_eval_batch_size: 1。训练本身没有问题',
  },
  'eval-loss-only': {
    en: 'prediction_loss_only: true, or preprocess_logits_for_metrics that keeps only the ids: logits of every token are gathered otherwise',
    zh: 'prediction_loss_only: true，或用 preprocess_logits_for_metrics 只保留 id：否则会收集每个 token 的 logits',
  },
  'eval-to-host': {
    en: 'eval_accumulation_steps: 1 moves predictions to host RAM as they come; they fill that instead',
    zh: 'eval_accumulation_steps: 1 会把预测结果及时移到主机内存（但会占用主机内存）',
  },
  'save-offloaded': {
    en: 'gather the state on the CPU of one rank, or save in shards (FSDP: SHARDED_STATE_DICT, or FullStateDictConfig(offload_to_cpu=True, rank0_only=True)). Training is fine as it is',
    zh: '在一个 rank 的 CPU 上收集状态，或分片保存（FSDP：SHARDED_STATE_DICT 或 FullStateDictConfig(offload_to_cpu=True, rank0_only=True)）。训练本身没有问题',
  },
  'merge-on-cpu': {
    en: 'if it merged an adapter: run the merge again by itself on the CPU (CUDA_VISIBLE_DEVICES=""); the adapter is already saved',
    zh: '若是在合并适配器：单独在 CPU 上重新合并（CUDA_VISIBLE_DEVICES=""），适配器已经保存',
  },
  'check-checkpoint': {
    en: 'do not trust the last checkpoint: it was written though tensors could not be copied. Load it once before relying on it',
    zh: '不要相信最后一个检查点：有张量未能复制。使用前请先加载验证',
  },
  'expandable-segments': {
    en: 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (before torch 2.1: max_split_size_mb:256)',
    zh: '设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True（torch 2.1 之前用 max_split_size_mb:256）',
  },
  'even-rows': {
    en: 'rows of like length (pad_to_multiple_of, group_by_length, packing): blocks of ever new sizes are what breaks memory up',
    zh: '让各行长度接近（pad_to_multiple_of、group_by_length、packing）：不断变化的块大小会造成碎片',
  },
  'free-card': {
    en: 'end or move the other processes, then start again as it was. A pid that does not exist here belongs to another container: ask on the host',
    zh: '结束或迁移其他进程，然后按原设置重新开始。此处不存在的 pid 属于其他容器：请在宿主机上查看',
  },
  'other-card': { en: 'or take another card: CUDA_VISIBLE_DEVICES=N', zh: '或换一张卡：CUDA_VISIBLE_DEVICES=N' },
  'own-device': {
    en: 'the other processes look like ranks of this very run on the same card: torch.cuda.set_device(local_rank), and load with the local device instead of "cuda"',
    zh: '其他进程看起来是本次训练的其他 rank 挤在同一张卡上：torch.cuda.set_device(local_rank)，加载时用本地设备而不是 "cuda"',
  },
  'no-skipping': {
    en: 'do not skip batches on OOM with several ranks: the others wait in a collective until the watchdog ends them',
    zh: '多卡训练时不要在 OOM 后跳过批次：其他 rank 会在集合通信中一直等待直到超时',
  },
  'check-request': {
    en: 'look at the shape that was asked for (a row far too long, a mask of length², an id beyond the vocabulary, a padded outlier): do not buy memory for it',
    zh: '检查申请的张量形状（过长的行、长度平方的掩码、超出词表的 id、异常填充）：不要为此购买显存',
  },
  'first-error': {
    en: 'look for the first error on any rank, above this one: this size is only its echo',
    zh: '在任一 rank 更早的位置寻找第一个错误：这个大小只是它的后果',
  },
  'vllm-share': {
    en: 'lower vllm_gpu_memory_utilization (0.3 beside training), or let the engine sleep or run on a card of its own; raise it only if the engine has the card to itself',
    zh: '降低 vllm_gpu_memory_utilization（与训练同卡时 0.3），或让引擎休眠、单独用一张卡；只有引擎独占显卡时才调高',
  },
  'explicit-batch': {
    en: 'auto_find_batch_size: false, and a batch size by hand: the search does not mix with DeepSpeed or with resuming',
    zh: 'auto_find_batch_size: false，手动设置批大小：自动搜索不能与 DeepSpeed 或断点恢复一起使用',
  },
  'unpaged-optimizer': {
    en: 'an optimizer that is not paged (optim: adamw_bnb_8bit or adamw_torch): under WSL managed memory fails though the card has room',
    zh: '改用非分页优化器（optim: adamw_bnb_8bit 或 adamw_torch）：WSL 下托管内存会失败，即使显存还有空间',
  },
  'single-block': {
    en: 'this driver limits one block to 4 GB, whatever is free: a smaller batch or shorter rows, or a newer IPEX',
    zh: '该驱动限制单块不超过 4 GB，与空闲量无关：减小批大小或序列长度，或升级 IPEX',
  },
} as const satisfies Partial<Record<RemedyId, Phrase>>;
