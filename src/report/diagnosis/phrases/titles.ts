import type { FailureKind, FailurePhase, Verdict } from '../../../diagnosis/index.ts';
import type { Phrase } from './phrase.ts';

/** What happened, one clause; `{phase}` stands where the phase is named. */
export const TITLES: Readonly<Record<FailureKind, Phrase>> = {
  vram_capacity: { en: 'GPU memory (VRAM) ran out{phase}', zh: '{phase}显存（VRAM）不足' },
  vram_fragmentation: {
    en: 'GPU memory (VRAM) ran out{phase}, with free memory left in pieces',
    zh: '{phase}显存（VRAM）碎片化：空闲显存零散，无法使用',
  },
  vram_other_process: {
    en: 'GPU memory (VRAM) ran out{phase}: other processes hold much of the card',
    zh: '{phase}显存（VRAM）不足：其他进程占用了大量显存',
  },
  vram_leak_growth: {
    en: 'GPU memory (VRAM) ran out{phase} after growing step by step',
    zh: '{phase}显存（VRAM）逐步增长，最终耗尽',
  },
  vram_eval_spike: { en: 'GPU memory (VRAM) ran out in evaluation', zh: '评估阶段显存（VRAM）不足' },
  vram_checkpoint_save_spike: {
    en: 'GPU memory (VRAM) ran out while a checkpoint was saved or merged',
    zh: '保存或合并检查点时显存（VRAM）不足',
  },
  vram_load_spike: { en: 'GPU memory (VRAM) ran out{phase}', zh: '{phase}显存（VRAM）不足' },
  nccl_hang_after_oom: {
    en: 'one rank ran out of GPU memory (VRAM){phase}, the others waited for it',
    zh: '某个 rank {phase}显存（VRAM）不足，其余 rank 一直等待',
  },
  host_ram: { en: 'host RAM ran out{phase}', zh: '{phase}主机内存不足' },
  dataloader_ram: {
    en: 'a DataLoader worker was killed, most likely for want of host RAM',
    zh: 'DataLoader 工作进程被杀死，很可能是主机内存不足',
  },
  cgroup: {
    en: 'the memory limit of this container or job ended the run',
    zh: '容器或作业的内存上限终止了训练',
  },
  swap_thrash: { en: 'host RAM ran out and the machine was swapping', zh: '主机内存不足，机器在频繁使用交换分区' },
  shm: { en: 'shared memory (/dev/shm) ran out', zh: '共享内存（/dev/shm）不足' },
  disk: { en: 'the disk is full, or the quota is used up', zh: '磁盘已满，或配额已用完' },
  not_memory: { en: 'the run failed, and not for want of memory', zh: '训练失败，但与内存、显存无关' },
  config_bug: {
    en: 'the run failed by a setting or a bug, not for want of a larger card',
    zh: '训练因配置或程序错误失败，换更大的显卡没有用',
  },
  unknown: { en: 'the text alone does not tell what ended the run', zh: '仅凭日志无法判断训练为何终止' },
};

/** Filled into a title with its own space. */
export const PHASES: Readonly<Record<FailurePhase, Phrase>> = {
  load: { en: ' while the model was loaded', zh: '加载模型时' },
  forward: { en: ' in the forward pass', zh: '前向传播时' },
  backward: { en: ' in the backward pass', zh: '反向传播时' },
  optimizer: { en: ' in the optimizer step', zh: '优化器更新时' },
  eval: { en: ' in evaluation', zh: '评估时' },
  save: { en: ' while a checkpoint was saved', zh: '保存检查点时' },
  resume: { en: ' while a checkpoint was loaded to resume', zh: '加载检查点恢复训练时' },
  unknown: { en: '', zh: '' },
};

/** The answer to "more VRAM, more RAM, or a setting?". */
export const VERDICTS: Readonly<Record<Verdict, Phrase>> = {
  upgrade_vram: {
    en: 'a GPU with more memory; no permitted setting is enough',
    zh: '需要显存更大的显卡：允许的设置都不够',
  },
  add_ram: {
    en: 'more host RAM (or a higher limit), or less use of it; more VRAM would not help',
    zh: '增加主机内存（或提高上限），或减少使用；增加显存没有帮助',
  },
  fix_config: {
    en: 'change a setting; neither more VRAM nor more RAM is needed first',
    zh: '先改设置，不必先加显存或内存',
  },
  free_gpu: {
    en: 'free the card of other processes; the run itself need not shrink',
    zh: '先清理占用显卡的其他进程，不必缩小训练',
  },
  set_alloc_conf: { en: 'set the allocator; more VRAM is not needed first', zh: '调整显存分配器设置，不必先加显存' },
  increase_shm: { en: 'a larger /dev/shm; neither VRAM nor RAM is short', zh: '增大 /dev/shm；显存和内存都不缺' },
  free_disk: { en: 'free disk space; no memory is short', zh: '清理磁盘空间；内存和显存都不缺' },
  retry_smaller: {
    en: 'a smaller step (settings first, a larger card last); more RAM would not help',
    zh: '缩小每步的显存（先改设置，最后才换卡）；加内存没有帮助',
  },
  not_oom: { en: 'not a matter of memory: neither VRAM nor RAM would help', zh: '与内存无关：加显存或内存都没有帮助' },
  cannot_tell: { en: 'cannot tell from this text; look here first', zh: '仅凭此日志无法判断，请先按下列步骤检查' },
};

/** Candidates where the text does not decide. */
export const CANDIDATES: Readonly<Record<FailureKind, Phrase>> = {
  vram_capacity: { en: 'the card is too small for these settings', zh: '以当前设置显存不够' },
  vram_fragmentation: { en: 'free GPU memory in pieces (fragmentation)', zh: '显存碎片化' },
  vram_other_process: { en: 'other processes on the card', zh: '显卡上有其他进程' },
  vram_leak_growth: { en: 'memory that grows step by step', zh: '显存逐步增长（泄漏）' },
  vram_eval_spike: { en: 'a peak in evaluation', zh: '评估阶段的峰值' },
  vram_checkpoint_save_spike: { en: 'a peak while saving', zh: '保存检查点时的峰值' },
  vram_load_spike: { en: 'a peak left by loading or resuming', zh: '加载或恢复时的峰值' },
  nccl_hang_after_oom: { en: 'ranks that wait for one out of memory', zh: '其他 rank 在等待显存耗尽的 rank' },
  host_ram: {
    en: 'host RAM ran out (the kernel kills without a word)',
    zh: '主机内存不足（内核会直接杀死进程，不留信息）',
  },
  dataloader_ram: { en: 'DataLoader workers filled host RAM', zh: 'DataLoader 工作进程占满主机内存' },
  cgroup: { en: 'the memory limit of a container or job', zh: '容器或作业的内存上限' },
  swap_thrash: { en: 'a machine that swaps', zh: '机器频繁换页' },
  shm: { en: '/dev/shm is too small', zh: '/dev/shm 太小' },
  disk: { en: 'the disk is full', zh: '磁盘已满' },
  not_memory: { en: 'something other than memory', zh: '与内存无关的原因' },
  config_bug: { en: 'a setting that cannot work', zh: '无法工作的设置' },
  unknown: { en: 'not known', zh: '未知' },
};
