import type { RemedyId } from '../../../diagnosis/index.ts';
import type { Phrase } from './phrase.ts';

/** Remedies for host memory, shared memory, disk, and for what is no matter of memory. */
export const OTHER_REMEDIES = {
  'fewer-workers': {
    en: 'dataloader_num_workers: 0 or 1: every worker of every rank holds its own batches, and copies what it touches of the data',
    zh: 'dataloader_num_workers: 0 或 1：每个 rank 的每个工作进程都有自己的批次，并会复制访问到的数据',
  },
  'fewer-preprocessing': {
    en: 'fewer processes that prepare the data (dataset_num_proc, preprocessing_num_workers, num_proc): prepare once, save to disk, and train from that',
    zh: '减少预处理进程数（dataset_num_proc、preprocessing_num_workers、num_proc）：先处理一次存盘，再用来训练',
  },
  'stream-data': {
    en: 'stream the data or keep it memory-mapped (streaming: true, Arrow files) instead of lists in RAM',
    zh: '流式读取或内存映射数据（streaming: true、Arrow 文件），不要把整个数据集放进列表',
  },
  'no-pinning': {
    en: 'dataloader_pin_memory: false, and no pinned offload buffers (pin_memory: false in the DeepSpeed config)',
    zh: 'dataloader_pin_memory: false，并关闭锁页的 offload 缓冲（DeepSpeed 配置中 pin_memory: false）',
  },
  'load-once': {
    en: 'do not load the model once per rank: low_cpu_mem_usage, FSDP cpu_ram_efficient_loading, deepspeed.zero.Init, or straight onto the device (map_location)',
    zh: '不要让每个 rank 都在内存中加载整个模型：low_cpu_mem_usage、FSDP cpu_ram_efficient_loading、deepspeed.zero.Init，或直接加载到显卡（map_location）',
  },
  'less-offload': {
    en: 'less offload to host RAM (ZeRO offload, paged optimizers, FSDP offload_params), where the card has the room',
    zh: '减少向主机内存的 offload（ZeRO offload、分页优化器、FSDP offload_params），前提是显存够用',
  },
  'eval-arrays': {
    en: 'keep less of the predictions (preprocess_logits_for_metrics, prediction_loss_only, smaller eval set): one array of all logits is what was asked for',
    zh: '少保留预测结果（preprocess_logits_for_metrics、prediction_loss_only、缩小评估集）：申请的是包含全部 logits 的单个数组',
  },
  'raise-limit': {
    en: 'raise the limit, the machine may have plenty: Slurm --mem or --mem-per-cpu, docker run --memory, Kubernetes resources.limits.memory',
    zh: '提高上限（机器本身可能还有很多内存）：Slurm 的 --mem / --mem-per-cpu，docker run --memory，Kubernetes 的 resources.limits.memory',
  },
  'paging-file': {
    en: 'Windows: a larger paging file (System > Advanced > Performance > Virtual memory), or fewer workers: each process commits its own copy of the CUDA libraries',
    zh: 'Windows：增大分页文件（系统 > 高级 > 性能 > 虚拟内存），或减少工作进程：每个进程都会提交一份 CUDA 库',
  },
  'add-ram': {
    en: 'more host RAM, when the settings above are not wanted or not enough',
    zh: '若以上设置都不可行或不够，再增加主机内存',
  },
  'prove-kill': {
    en: 'find out who sent the signal: the kernel (dmesg, memory.events), a scheduler (job limits, preemption) or a person. Only the first is a matter of host RAM; VRAM never ends a run this way',
    zh: '查明是谁发出的信号：内核（dmesg、memory.events）、调度系统（作业限制、抢占）还是人为。只有第一种与主机内存有关；显存不足不会以这种方式结束训练',
  },
  'shm-docker': {
    en: 'Docker: docker run --shm-size=16g ... (or --ipc=host); the default is 64 MiB. Compose: shm_size: "16gb"',
    zh: 'Docker：docker run --shm-size=16g ...（或 --ipc=host），默认只有 64 MiB。Compose：shm_size: "16gb"',
  },
  'shm-kubernetes': {
    en: 'Kubernetes: mount an emptyDir at /dev/shm: volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}], volumeMounts: [{name: shm, mountPath: /dev/shm}]',
    zh: 'Kubernetes：把 emptyDir 挂到 /dev/shm：volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]，volumeMounts: [{name: shm, mountPath: /dev/shm}]',
  },
  'no-workers': {
    en: 'until then: dataloader_num_workers: 0, which uses no shared memory',
    zh: '临时办法：dataloader_num_workers: 0，不使用共享内存',
  },
  'free-disk': {
    en: 'make room on the volume of the OUTPUT folder (a checkpoint with AdamW states takes about 12 bytes a trainable parameter with fp32 weights), or write elsewhere (output_dir)',
    zh: '清理输出目录所在的卷（fp32 权重加 AdamW 状态的检查点约每个可训练参数 12 字节），或换到其他位置（output_dir）',
  },
  'save-less': {
    en: 'keep fewer checkpoints: save_total_limit: 2, save_only_model: true; delete a half-written last one',
    zh: '少保留检查点：save_total_limit: 2，save_only_model: true；删除写了一半的最后一个',
  },
  'move-caches': {
    en: 'caches on a larger volume: HF_HOME, HF_DATASETS_CACHE, TMPDIR',
    zh: '把缓存移到更大的卷：HF_HOME、HF_DATASETS_CACHE、TMPDIR',
  },
  'device-assert': {
    en: 'a kernel got data it cannot take, mostly a label or token id outside the vocabulary: compare the ids with the size of the embedding (resize_token_embeddings); CUDA_LAUNCH_BLOCKING=1 shows the line',
    zh: 'GPU 内核收到非法数据，多为标签或 token id 超出词表：对照嵌入层大小检查 id（resize_token_embeddings）；CUDA_LAUNCH_BLOCKING=1 可定位代码行',
  },
  'wait-collective': {
    en: 'one rank did not arrive in time: look at what each rank did last (a crash, slow data, uneven batches), then at the network. A memory text after the timeout is only an echo',
    zh: '某个 rank 没有按时到达：查看各 rank 最后在做什么（崩溃、数据慢、批次不均），再查网络。超时之后的内存报错只是后果',
  },
  'check-hardware': {
    en: 'the card or its driver failed (ECC, Xid, lost from the bus): drain the node, reset or replace the GPU; starting again on it will fail again',
    zh: '显卡或驱动故障（ECC、Xid、掉卡）：下线该节点，重置或更换 GPU；在同一张卡上重试还会失败',
  },
  'check-driver': {
    en: 'driver and library do not match: reboot after a driver update, or install a torch built for this driver',
    zh: '驱动与库版本不匹配：驱动更新后重启，或安装与驱动匹配的 torch',
  },
  'right-build': {
    en: 'this build of torch or of an extension has no code for this card: install one that lists its compute capability (torch.cuda.get_arch_list())',
    zh: '该 torch 或扩展没有为此显卡编译：安装支持其计算能力的版本（torch.cuda.get_arch_list()）',
  },
  'right-device': {
    en: 'a device was named that is not there: check CUDA_VISIBLE_DEVICES (plain numbers for libraries that cannot read MIG or GPU UUIDs) and the number of processes',
    zh: '指定了不存在的设备：检查 CUDA_VISIBLE_DEVICES（有些库不识别 MIG/GPU UUID，只能用数字）和进程数',
  },
  'kernel-size': {
    en: 'a GPU kernel wants more on-chip memory than this card has (bytes per block, not VRAM and not /dev/shm): another attention implementation, smaller block sizes or num_stages; a smaller batch does not help',
    zh: 'GPU 内核需要的片上共享内存超过此卡上限（每块的字节数，不是显存也不是 /dev/shm）：换注意力实现，或减小 block size / num_stages；减小批大小没有用',
  },
  'not-a-number': {
    en: 'the loss or the probabilities became NaN or infinite: lower learning rate, gradient clipping, bf16 instead of fp16, look at the data',
    zh: '损失或概率变成 NaN 或无穷大：降低学习率、梯度裁剪、用 bf16 代替 fp16、检查数据',
  },
  'install-package': {
    en: 'install the package the error names into the Python that trains, or fix its version',
    zh: '在训练所用的 Python 中安装报错提到的包，或修正其版本',
  },
  'ask-access': {
    en: 'the model is gated: accept its licence on the hub, then hf auth login (or HF_TOKEN) on this machine',
    zh: '模型需要授权：先在 Hub 上接受许可，再在本机执行 hf auth login（或设置 HF_TOKEN）',
  },
  'older-checkpoint': {
    en: 'the file is cut off (a run or a copy was ended while writing it): delete it and take the checkpoint before, or fetch it again; make sure the disk was not full',
    zh: '文件不完整（写入或复制时被中断）：删除它，用上一个检查点或重新下载；并确认磁盘没有满',
  },
  'remote-quota': {
    en: 'a remote service refused for want of quota: wait, or lower the rate of requests',
    zh: '远程服务因配额拒绝：等待或降低请求频率',
  },
  'open-files': {
    en: 'too many open files: ulimit -n 65536, or torch.multiprocessing.set_sharing_strategy("file_system")',
    zh: '打开的文件过多：ulimit -n 65536，或 torch.multiprocessing.set_sharing_strategy("file_system")',
  },
  scheduler: {
    en: 'the scheduler ended the job (time limit, preemption, node failure): ask for more time, and resume from the last checkpoint',
    zh: '调度系统结束了作业（超时、抢占、节点故障）：申请更长时间，并从最近的检查点恢复',
  },
  'read-exception': {
    en: 'read the exception above: it ended the run, and nothing around it points to memory',
    zh: '请看上面的异常：是它结束了训练，周围没有内存问题的迹象',
  },
  'look-closer': {
    en: 'run it once more with the looks below beside it: they tell the candidates apart',
    zh: '再运行一次，同时执行下面的检查：可以区分这些可能',
  },
} as const satisfies Partial<Record<RemedyId, Phrase>>;
