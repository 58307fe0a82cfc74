import { workOut } from './arithmetic.ts';
import type { Failure, FailurePhase, Trait } from './failure.ts';

/** Something to do about a failure; its words are in the catalogue of `report`. */
export type RemedyId =
  // device memory, the step
  | 'micro-batch'
  | 'gradient-checkpointing'
  | 'fused-loss'
  | 'shorter-rows'
  | 'lora'
  | 'qlora'
  | 'shard'
  | 'optimizer-8bit'
  | 'optimizer-offload'
  | 'long-samples'
  | 'find-growth'
  | 'detach-kept'
  | 'larger-card'
  // device memory, around the step
  | 'load-own-device'
  | 'load-sixteen-bit'
  | 'load-sharded'
  | 'resume-on-cpu'
  | 'drop-after-load'
  | 'eval-batch'
  | 'eval-loss-only'
  | 'eval-to-host'
  | 'save-offloaded'
  | 'merge-on-cpu'
  | 'check-checkpoint'
  // the card
  | 'expandable-segments'
  | 'even-rows'
  | 'free-card'
  | 'other-card'
  | 'own-device'
  | 'no-skipping'
  // settings that cannot work
  | 'check-request'
  | 'first-error'
  | 'vllm-share'
  | 'explicit-batch'
  | 'unpaged-optimizer'
  | 'single-block'
  // host memory
  | 'fewer-workers'
  | 'fewer-preprocessing'
  | 'stream-data'
  | 'no-pinning'
  | 'load-once'
  | 'less-offload'
  | 'eval-arrays'
  | 'raise-limit'
  | 'paging-file'
  | 'add-ram'
  | 'prove-kill'
  // shared memory, disk
  | 'shm-docker'
  | 'shm-kubernetes'
  | 'no-workers'
  | 'free-disk'
  | 'save-less'
  | 'move-caches'
  // something else
  | 'device-assert'
  | 'wait-collective'
  | 'check-hardware'
  | 'check-driver'
  | 'right-build'
  | 'right-device'
  | 'kernel-size'
  | 'not-a-number'
  | 'install-package'
  | 'ask-access'
  | 'older-checkpoint'
  | 'remote-quota'
  | 'open-files'
  | 'scheduler'
  | 'read-exception'
  | 'look-closer';

const STEP: readonly RemedyId[] = [
  'micro-batch',
  'gradient-checkpointing',
  'fused-loss',
  'shorter-rows',
  'lora',
  'qlora',
];
const MANY_STEPS = 20;

const AROUND: Partial<Record<FailurePhase, readonly RemedyId[]>> = {
  load: ['load-own-device', 'load-sixteen-bit', 'qlora', 'load-sharded', 'larger-card'],
  resume: ['resume-on-cpu', 'load-own-device', 'drop-after-load'],
  eval: ['eval-batch', 'eval-loss-only', 'eval-to-host'],
  save: ['save-offloaded', 'merge-on-cpu', 'lora'],
  optimizer: ['optimizer-8bit', 'optimizer-offload', 'shard', 'lora', 'larger-card'],
};

const BEST_FOR: Partial<Record<Trait, RemedyId>> = { 'sequence-logits': 'fused-loss', 'packed-rows': 'shorter-rows' };

/** Best first; a remedy of the cause's own before the general ones. */
function ofStep({ phase, traits = [], evidence }: Failure): readonly RemedyId[] {
  const around = AROUND[phase];
  if (around) return around;
  const own = traits.flatMap((trait) => BEST_FOR[trait] ?? []);
  const late: readonly RemedyId[] =
    (evidence[0]?.stepsBefore ?? 0) >= MANY_STEPS ? ['long-samples', 'find-growth'] : [];
  return [...new Set([...own, ...STEP.slice(0, 2), ...late, ...STEP.slice(2), 'larger-card' as const])];
}

const BUGS: Readonly<Record<string, readonly RemedyId[]>> = {
  'batch-search-reached-zero': ['explicit-batch', ...STEP],
  'bitsandbytes-managed-memory': ['unpaged-optimizer', 'micro-batch'],
  'vllm-cache-blocks': ['vllm-share'],
  'mps-buffer-size': ['shorter-rows', 'micro-batch'],
  'xpu-single-block': ['single-block', 'micro-batch'],
  'negative-allocation': ['check-request'],
};

function ofBug(failure: Failure): readonly RemedyId[] {
  const [main] = failure.evidence;
  const known = BUGS[main?.signature ?? ''];
  if (known) return known;
  if (failure.traits?.includes('batch-search')) return ['explicit-batch', ...ofStep(failure)];
  if (failure.traits?.includes('vllm')) return ['vllm-share'];
  const sums = workOut(failure);
  if (sums?.fault === 'garbage-size') return ['first-error'];
  if (failure.candidates.includes('vram_other_process')) return ['own-device', 'load-own-device'];
  return ['check-request', 'shorter-rows'];
}

function ofHostRam({ evidence, traits = [], phase, kind }: Failure): readonly RemedyId[] {
  const signature = evidence[0]?.signature;
  const first: RemedyId[] = [];
  if (kind === 'cgroup') first.push('raise-limit');
  if (traits.includes('preparing-data') || signature === 'worker-process-died')
    first.push('fewer-preprocessing', 'stream-data');
  if (traits.includes('rank-copies')) first.push('load-once');
  if (traits.includes('pinned-memory') || signature === 'pinned-host-memory') first.push('no-pinning', 'less-offload');
  if (signature === 'numpy-memory-error') first.push('eval-arrays');
  if (signature === 'windows-commit-limit') first.push('paging-file');
  if (phase === 'load') first.push('load-once');
  if (kind === 'dataloader_ram') first.push('fewer-workers', 'no-pinning');
  const general: readonly RemedyId[] = ['fewer-workers', 'less-offload', 'load-once', 'stream-data', 'add-ram'];
  return [...new Set([...first, ...general])];
}

const ELSE: Readonly<Record<string, readonly RemedyId[]>> = {
  'kernel-on-chip-resources': ['kernel-size'],
  'device-assert': ['device-assert'],
  'device-fault': ['device-assert', 'check-hardware'],
  'device-hardware': ['check-hardware'],
  'device-build': ['right-build'],
  'device-choice': ['right-device'],
  'device-lost': ['check-hardware'],
  'driver-mismatch': ['check-driver'],
  'device-name': ['right-device'],
  'too-many-files': ['open-files'],
  'truncated-file': ['older-checkpoint'],
  'remote-quota': ['remote-quota'],
  'scheduler-end': ['scheduler'],
  'ended-from-outside': ['scheduler'],
  'collective-timeout': ['wait-collective'],
  'not-a-number': ['not-a-number'],
  'missing-package': ['install-package'],
  'gated-model': ['ask-access'],
};

/** What to do, in the order in which to try it. */
export function remediesOf(failure: Failure): readonly RemedyId[] {
  const signature = failure.evidence[0]?.signature ?? '';
  switch (failure.kind) {
    case 'vram_capacity':
      return ofStep(failure);
    case 'nccl_hang_after_oom':
      return [...ofStep(failure), 'no-skipping'];
    case 'vram_leak_growth':
      return ['find-growth', 'detach-kept', 'micro-batch'];
    case 'vram_eval_spike':
      return AROUND.eval!;
    case 'vram_load_spike':
      return failure.phase === 'load' ? AROUND.load! : ['resume-on-cpu', 'drop-after-load', 'load-own-device'];
    case 'vram_checkpoint_save_spike':
      return signature === 'clone-failed-on-save' ? ['check-checkpoint', ...AROUND.save!] : AROUND.save!;
    case 'vram_fragmentation':
      return ['expandable-segments', 'even-rows', 'micro-batch'];
    case 'vram_other_process':
      return signature === 'vllm-startup-memory' ? ['free-card', 'vllm-share'] : ['free-card', 'other-card'];
    case 'config_bug':
      return ofBug(failure);
    case 'host_ram':
    case 'dataloader_ram':
    case 'cgroup':
    case 'swap_thrash':
      return ofHostRam(failure);
    case 'shm':
      return ['shm-docker', 'shm-kubernetes', 'no-workers'];
    case 'disk':
      return ['free-disk', 'save-less', 'move-caches'];
    case 'not_memory':
      return ELSE[signature] ?? ['read-exception'];
    case 'unknown':
      return failure.candidates.some((kind) => kind === 'host_ram' || kind === 'cgroup')
        ? ['prove-kill', 'look-closer']
        : ['look-closer'];
  }
}

/** Where to look for more, each with lines to paste. */
export type LookId =
  | 'gpu-memory'
  | 'gpu-processes'
  | 'snapshot'
  | 'host-memory'
  | 'kernel-log'
  | 'cgroup-files'
  | 'shm-size'
  | 'disk-space'
  | 'blocking-launches'
  | 'nccl-log'
  | 'gpu-health';

const UNKNOWN_LOOKS: readonly LookId[] = ['kernel-log', 'cgroup-files', 'host-memory', 'gpu-memory'];

/** The closer looks that could prove or refute a verdict. */
export function looksOf(failure: Failure | undefined): readonly LookId[] {
  if (!failure) return UNKNOWN_LOOKS;
  switch (failure.resource) {
    case 'vram':
      return failure.kind === 'vram_other_process'
        ? ['gpu-processes', 'gpu-memory']
        : ['gpu-memory', 'gpu-processes', 'snapshot'];
    case 'host_ram':
      return ['kernel-log', 'cgroup-files', 'host-memory'];
    case 'shm':
      return ['shm-size'];
    case 'disk':
      return ['disk-space'];
    case 'none': {
      const signature = failure.evidence[0]?.signature ?? '';
      if (signature === 'collective-timeout') return ['nccl-log', 'gpu-health'];
      if (/^device-(?:lost|hardware)$|^driver-mismatch$/.test(signature)) return ['gpu-health'];
      return /^device-/.test(signature) ? ['blocking-launches'] : [];
    }
    case 'unknown':
      return UNKNOWN_LOOKS;
  }
}
