import type { LookId } from '../../../diagnosis/index.ts';
import type { Phrase } from './phrase.ts';

/** A closer look: what it shows, and the lines to paste. */
export interface Look {
  readonly shows: Phrase;
  readonly lines: readonly string[];
  /** Lines of Python for the training script; the others are for a shell. */
  readonly python?: true;
}

export const LOOKS: Readonly<Record<LookId, Look>> = {
  'gpu-memory': {
    shows: { en: 'GPU memory, second by second, while it trains', zh: '训练时逐秒查看显存' },
    lines: ['nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -l 1'],
  },
  'gpu-processes': {
    shows: {
      en: 'who is on the card (run it on the host: a container sees only its own)',
      zh: '谁在占用显卡（在宿主机上运行，容器内只能看到自己的进程）',
    },
    lines: ['nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv'],
  },
  snapshot: {
    shows: {
      en: 'what holds the memory: open the file at https://pytorch.org/memory_viz',
      zh: '显存被什么占用：用 https://pytorch.org/memory_viz 打开该文件',
    },
    lines: [
      'torch.cuda.memory._record_memory_history(max_entries=100000)  # before training',
      'torch.cuda.memory._dump_snapshot("snapshot.pickle")           # after a few steps, or on OOM',
    ],
    python: true,
  },
  'host-memory': {
    shows: { en: 'host RAM and swap while it runs', zh: '运行时的主机内存和交换分区' },
    lines: ['free -h -s 2'],
  },
  'kernel-log': {
    shows: {
      en: 'whether the kernel killed it: a line names the process and its memory',
      zh: '是否被内核杀死：会有一行写明进程及其内存',
    },
    lines: ['sudo dmesg -T | grep -iE "out of memory|oom-kill|killed process"'],
  },
  'cgroup-files': {
    shows: {
      en: 'the memory limit of the container or job, and how often it killed (oom_kill)',
      zh: '容器或作业的内存上限，以及杀死进程的次数（oom_kill）',
    },
    lines: [
      'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory.events',
      'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory/memory.oom_control  # cgroup v1',
    ],
  },
  'shm-size': {
    shows: { en: 'size and use of shared memory, inside the container', zh: '容器内共享内存的大小和占用' },
    lines: ['df -h /dev/shm', 'ls -lhS /dev/shm | head'],
  },
  'disk-space': {
    shows: { en: 'free space, inodes and the largest folders', zh: '剩余空间、inode 以及最大的目录' },
    lines: ['df -h . ; df -i .', 'du -xh --max-depth=2 . 2>/dev/null | sort -h | tail'],
  },
  'blocking-launches': {
    shows: {
      en: 'the line that really failed (CUDA reports late otherwise)',
      zh: '真正出错的代码行（否则 CUDA 会延迟报错）',
    },
    lines: ['CUDA_LAUNCH_BLOCKING=1 python train.py ...'],
  },
  'nccl-log': {
    shows: { en: 'which rank stopped first, and in which collective', zh: '哪个 rank 最先停住，以及停在哪个集合通信' },
    lines: ['NCCL_DEBUG=INFO TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 torchrun ...'],
  },
  'gpu-health': {
    shows: { en: 'errors of the card itself', zh: '显卡自身的错误' },
    lines: ['nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER', 'sudo dmesg -T | grep -i xid'],
  },
};
