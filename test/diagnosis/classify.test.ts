import { describe, expect, it } from 'vitest';
import { GiB, MiB } from '../../src/core/index.ts';
import { classify } from '../../src/diagnosis/index.ts';
import { attempt, type Figures, newText, oom, readText, traceback } from './texts.ts';

describe('the figures of the message', () => {
  const kindOf = (figures: Figures) => readText(oom(figures))?.kind;

  it('call it capacity when everything is in use', () => {
    expect(readText(oom())).toMatchObject({ kind: 'vram_capacity', confidence: 'high', candidates: [] });
  });

  it('call it fragmentation when the stranded reserve would have served the request, and is no ordinary slack', () => {
    expect(readText(oom({ tried: '2.10 GiB', allocated: '16.40 GiB', stranded: '5.90 GiB' }))).toMatchObject({
      kind: 'vram_fragmentation',
      confidence: 'high',
      candidates: ['vram_capacity'],
    });
    // As much is stranded, but four times as much was asked for: it would not have helped.
    expect(kindOf({ tried: '12.40 GiB', allocated: '19.40 GiB', stranded: '2.90 GiB' })).toBe('vram_capacity');
    // Enough for the request, and yet only what lies around in any run.
    expect(kindOf({ tried: '200.00 MiB', allocated: '22.00 GiB', stranded: '400.00 MiB' })).toBe('vram_capacity');
  });

  it('leave both open in between', () => {
    expect(readText(oom({ tried: '1.20 GiB', allocated: '20.60 GiB', stranded: '1.70 GiB' }))).toMatchObject({
      kind: 'vram_capacity',
      candidates: ['vram_fragmentation'],
    });
  });

  it('do not call for expandable segments where they are in effect', () => {
    const evidence = attempt(oom({ tried: '2.10 GiB', allocated: '16.40 GiB', stranded: '5.90 GiB' }));
    expect(classify({ ...evidence, expandableSegments: true })?.kind).toBe('vram_capacity');
    expect(classify({ ...evidence, expandableSegments: false })?.kind).toBe('vram_fragmentation');
  });

  it('show the share of others', () => {
    const shared = {
      tried: '3.00 GiB',
      free: '1.00 GiB',
      self: '12.50 GiB',
      allocated: '12.00 GiB',
      stranded: '90.00 MiB',
    };
    expect(readText(oom({ ...shared, processes: [[4711, '9.80 GiB']] }))).toMatchObject({
      kind: 'vram_other_process',
      numbers: { othersBytes: Math.round(23.62 * GiB) - GiB - 12.5 * GiB },
      holders: [{ pid: 4711, bytes: Math.round(9.8 * GiB) }],
    });
    // What others hold would not have been enough.
    expect(kindOf({ ...shared, tried: '14.00 GiB', processes: [[4711, '9.80 GiB']] })).not.toBe('vram_other_process');
  });

  it('take the only process listed for the trainer itself when no clause names it', () => {
    const own = readText(oom({ self: '', processes: [[812, '22.70 GiB']] }));
    expect(own).toMatchObject({ kind: 'vram_capacity' });
    expect(own?.numbers.othersBytes).toBeUndefined();
    expect(
      kindOf({
        self: '',
        processes: [
          [900, '9.00 GiB'],
          [812, '13.60 GiB'],
        ],
        allocated: '12.90 GiB',
        free: '1.00 GiB',
      }),
    ).toBe('vram_other_process');
  });

  it('see ranks of the same run on one device', () => {
    const ranks = { tried: '90.00 MiB', free: '20.00 MiB', self: '15.30 GiB', allocated: '14.80 GiB' };
    const processes = [
      [5101, '2.61 GiB'],
      [5102, '2.61 GiB'],
      [5103, '2.63 GiB'],
    ] as const;
    expect(readText(oom({ ...ranks, processes }))).toMatchObject({
      kind: 'config_bug',
      resource: 'vram',
      candidates: ['vram_other_process'],
    });
    // The same sizes at pids far apart are strangers with the same program, until one of them is known to be ours.
    const apart = oom({ ...ranks, processes: processes.map(([pid, size]) => [pid * 7, size] as const) });
    expect(readText(apart)?.kind).toBe('vram_other_process');
    expect(classify(attempt(apart, { treePids: [40, 5102 * 7] }))?.kind).toBe('config_bug');
  });

  it('call a request no such card could serve a wrong request', () => {
    expect(kindOf({ tried: '310.00 GiB' })).toBe('config_bug');
    expect(
      kindOf({
        tried: '14.00 GiB',
        allocated: '1.80 GiB',
        free: '13.10 GiB',
        self: '2.40 GiB',
        stranded: '10.00 MiB',
        total: '15.77 GiB',
      }),
    ).toBe('config_bug');
    expect(readText('RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.')?.kind).toBe(
      'config_bug',
    );
  });

  it('are not calculated with when they cannot be true', () => {
    const impossible = readText(oom({ allocated: '26.10 GiB', stranded: '9.00 GiB' }));
    expect(impossible).toMatchObject({
      kind: 'unknown',
      resource: 'vram',
      candidates: ['vram_capacity', 'vram_leak_growth'],
    });
    expect(impossible?.numbers.allocatedBytes).toBeUndefined();
    expect(impossible?.numbers.triedBytes).toBe(Math.round(1.37 * GiB));
  });

  it('come from a system that does not know the own share (2^34 GiB)', () => {
    expect(readText(oom({ self: '17179869184.00 GiB' }))).toMatchObject({ kind: 'vram_capacity' });
  });

  it('count MPS in 1024s, whatever its unit is called', () => {
    expect(
      readText(
        'RuntimeError: MPS backend out of memory (MPS allocated: 12.00 GB, other allocations: 2.50 GB, max allowed: 14.60 GB). Tried to allocate 256.00 MB on private pool.',
      )?.numbers,
    ).toEqual({
      triedBytes: 256 * MiB,
      totalBytes: Math.round(14.6 * GiB),
      allocatedBytes: 12 * GiB,
      othersBytes: 2.5 * GiB,
    });
  });
});

describe('the phase, from the frames', () => {
  it.each([
    [
      ['main: model = AutoModelForCausalLM.from_pretrained(path)', '_load_pretrained_model', 'to'],
      'load',
      'vram_load_spike',
    ],
    [['main: model.to(device)', 'convert: return t.to(device)'], 'load', 'vram_load_spike'],
    [
      ['train: trainer.train()', 'training_step: loss = self.compute_loss(model, inputs)', 'forward: x = self.mlp(x)'],
      'forward',
      'vram_capacity',
    ],
    [['loop: out = model(**batch)', '_call_impl', 'forward', 'cross_entropy'], 'forward', 'vram_capacity'],
    [
      ['training_step: self.accelerator.backward(loss)', 'backward: loss.backward()', '_engine_run_backward'],
      'backward',
      'vram_capacity',
    ],
    // recomputation under gradient checkpointing
    [['backward: loss.backward()', 'recompute_fn', 'forward: x = self.mlp(x)'], 'backward', 'vram_capacity'],
    [
      ['train: optimizer.step()', 'step', '_init_group: state["exp_avg"] = torch.zeros_like(p)'],
      'optimizer',
      'vram_capacity',
    ],
    // Lightning runs the step inside the optimizer's closure
    [
      ['optimizer_step: optimizer.step(closure=closure)', 'closure', 'training_step', 'forward'],
      'forward',
      'vram_capacity',
    ],
    [
      [
        'train',
        '_maybe_log_save_evaluate: metrics = self._evaluate(trial)',
        'evaluation_loop',
        'prediction_step',
        'forward',
      ],
      'eval',
      'vram_eval_spike',
    ],
    [
      ['train', '_maybe_log_save_evaluate: self._save_checkpoint(model, trial)', '_save_checkpoint', 'state_dict'],
      'save',
      'vram_checkpoint_save_spike',
    ],
    [['main: model = model.merge_and_unload()', 'merge_and_unload'], 'save', 'vram_checkpoint_save_spike'],
    [
      ['train', '_load_optimizer_and_scheduler: self.optimizer.load_state_dict(state)', 'load_state_dict'],
      'resume',
      'vram_load_spike',
    ],
    [['main: x = torch.ones(n, device=dev)'], 'unknown', 'vram_capacity'],
    // a run that was told to resume has long resumed when its step fails
    [
      ['main: trainer.train(resume_from_checkpoint=last)', 'training_step', 'compute_loss', 'forward'],
      'forward',
      'vram_capacity',
    ],
    [['main: step = resume_from_folder(model, path)', 'to'], 'resume', 'vram_load_spike'],
    // saving tensors for the backward pass is not saving a checkpoint
    [['training_step', 'forward: ctx.save_for_backward(x)', 'save_for_backward'], 'forward', 'vram_capacity'],
  ] as const)('%j -> %s', (frames, phase, kind) => {
    expect(readText(traceback(frames, oom()))).toMatchObject({ phase, kind });
  });

  it('is read off a boxed traceback too', () => {
    const boxed = [
      '╭───────────────── Traceback (most recent call last) ─────────────────╮',
      '│ /srv/lib/trainer.py:880 in evaluation_loop                          │',
      '│                                                                     │',
      '│   878 │   │   with torch.no_grad():                                 │',
      '│ ❱ 880 │   │   │   logits = nested_concat(logits, more)              │',
      '╰─────────────────────────────────────────────────────────────────────╯',
      `OutOfMemoryError: ${newText()}`,
    ].join('\n');
    expect(readText(boxed)).toMatchObject({ phase: 'eval', kind: 'vram_eval_spike' });
  });

  it('belongs to the rank that failed', () => {
    const evaluating = traceback(['evaluation_loop', 'forward'], 'ValueError: a label is out of range');
    const training = traceback(['training_step: self.accelerator.backward(loss)', 'backward'], oom());
    const tagged = (rank: number, text: string) => text.split('\n').map((line) => `[rank${rank}]: ${line}`);
    const [left, right] = [tagged(0, evaluating), tagged(1, training)];
    const mixed = right.flatMap((line, at) => [left[at] ?? '', line]).join('\n');
    expect(readText(mixed)).toMatchObject({ phase: 'backward', evidence: [{ rank: 1 }, { rank: 0 }] });
  });

  it('shows an inference engine beside the trainer, and page-locked host memory', () => {
    expect(readText(traceback(['__init__: self.llm = LLM(model=name)', 'load_model'], oom()))).toMatchObject({
      kind: 'config_bug',
      resource: 'vram',
    });
    expect(
      readText(
        traceback(
          ['_pin_memory_loop: data = pin_memory(data)', 'pin_memory'],
          'RuntimeError: CUDA error: out of memory',
        ),
      ),
    ).toMatchObject({
      kind: 'host_ram',
      candidates: ['vram_capacity'],
    });
  });
});

describe('what came first', () => {
  const timeout =
    '[rank2]:[E203 04:05:06.789 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE) ran for 600021 milliseconds before timing out.';
  const garbage = 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.';

  it('is the cause: an assertion before a library that then finds no memory', () => {
    const assertion = '../aten/src/Indexing.cu:11: block: [1,0,0], thread: [3,0,0] Assertion `index < bound` failed.';
    const cublas = 'RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`';
    expect(readText(`${assertion}\n${cublas}`)).toMatchObject({ kind: 'not_memory' });
    expect(readText(cublas)).toMatchObject({ kind: 'vram_capacity' });
  });

  it('is a timeout, and the garbage size after it an echo', () => {
    expect(readText(`${timeout}\n${garbage}`)).toMatchObject({ kind: 'not_memory', resource: 'none' });
  });

  it('is a rank out of memory, and the timeouts are of those that waited', () => {
    expect(readText(`[rank0]: ${oom()}\n${timeout}`)).toMatchObject({
      kind: 'nccl_hang_after_oom',
      resource: 'vram',
      candidates: ['vram_capacity'],
      evidence: [{ rank: 0 }, { rank: 2 }],
    });
  });

  it('is what an exception of a later attempt hides', () => {
    const later = "AttributeError: 'NoneType' object has no attribute 'backward'";
    expect(readText(`${oom()}\n${later}`)).toMatchObject({
      kind: 'config_bug',
      resource: 'vram',
      candidates: ['vram_capacity'],
    });
  });

  it('is not the launcher, which fails because a rank did', () => {
    const box = 'torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n  exitcode  : 1 (pid: 31)';
    expect(classify(attempt(`${traceback(['f'], oom())}\n${box}`))?.kind).toBe('vram_capacity');
    expect(classify(attempt(box))).toMatchObject({ kind: 'unknown', candidates: [] });
  });

  it('is the limit of the cgroup, whichever process it struck', () => {
    const worker = 'RuntimeError: DataLoader worker (pid 90) is killed by signal: Killed. ';
    const slurm = 'slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.';
    expect(readText(`${worker}\n${slurm}`)).toMatchObject({ kind: 'cgroup', candidates: ['dataloader_ram'] });
    expect(classify(attempt(worker, { cgroupOomKills: 2, cgroupLimitBytes: 8 * GiB }))?.kind).toBe('cgroup');
    expect(classify(attempt(worker, { cgroupOomKills: 2, cgroupLimitBytes: null }))?.kind).toBe('dataloader_ram');
  });
});

describe('an error the trainer dealt with', () => {
  const skip = `2031-02-03 04:05:06 | WARNING | trainer | OOM: Ran out of memory with exception: ${newText()}`;
  const bar = (step: number): string => `epoch 2: ${step}%|##   | ${step}/100 [00:10<00:50,  1.10it/s]`;

  it('is no failure when the run ends well', () => {
    expect(classify(attempt(`${skip}\n${oom()}`, { exitCode: 0 }))).toBeUndefined();
  });

  it('does not explain an end that came later', () => {
    const crash = traceback(['load: row["text"]'], "KeyError: 'text'");
    const log = [bar(3), bar(4), oom(), bar(5), bar(6), bar(7), crash].join('\n');
    expect(classify(attempt(log))).toMatchObject({ kind: 'not_memory', evidence: [{ text: "KeyError: 'text'" }, {}] });
    // Without progress in between the first error is the cause.
    expect(classify(attempt([bar(3), bar(4), oom(), bar(5), crash].join('\n')))?.kind).toBe('vram_capacity');
  });

  it('explains an end that has no other word', () => {
    expect(classify(attempt(skip))).toMatchObject({ kind: 'vram_capacity', confidence: 'medium' });
  });

  it('may have left the other ranks waiting when a log just stops', () => {
    expect(readText(`${skip}\n${bar(40)}`)).toMatchObject({ kind: 'nccl_hang_after_oom', confidence: 'low' });
  });

  it('may be a checkpoint that was not saved whole', () => {
    expect(
      readText(`/srv/fsdp.py:88: UserWarning: Failed to clone() tensor with name head.weight. Error: ${newText()}`),
    ).toMatchObject({ kind: 'vram_checkpoint_save_spike' });
  });

  it('is a micro batch that was lowered', () => {
    const lowered =
      'RuntimeWarning: CUDA out of memory detected. Train microbatch size will be decreased from 96 -> 48.';
    expect(classify(attempt(lowered, { exitCode: 0 }))).toBeUndefined();
    expect(readText(`${lowered}\n${traceback(['f'], 'ValueError: nothing to train on')}`)?.kind).toBe('not_memory');
  });
});

describe('a process killed by signal 9', () => {
  const silent = attempt('step 4\n', { exitCode: undefined, signal: 'SIGKILL' });

  it('was slowed to death by swapping where much of it lay there, not where little did', () => {
    const swapped = { peakRamBytes: 30e9, peakSwapBytes: 14e9 };
    expect(classify({ ...silent, ...swapped })).toMatchObject({
      kind: 'swap_thrash',
      resource: 'host_ram',
      candidates: ['host_ram', 'cgroup'],
    });
    expect(classify({ ...silent, ...swapped, peakSwapBytes: 2e9 })?.kind).toBe('unknown');
    expect(classify({ ...silent, ...swapped, cgroupOomKills: 1, cgroupLimitBytes: 32e9 })?.kind).toBe('cgroup');
  });

  it('went silent while it swapped', () => {
    const stalled = attempt('step 4\n', { exitCode: undefined, signal: 'SIGTERM', stoppedBecause: 'stall' });
    expect(classify({ ...stalled, peakRamBytes: 6e9, peakSwapBytes: 5e9 })?.kind).toBe('swap_thrash');
    expect(classify({ ...stalled, peakRamBytes: 6e9, peakSwapBytes: 0 })?.kind).toBe('not_memory');
  });

  it('leaves the cause open without a sign', () => {
    expect(classify(silent)).toMatchObject({
      kind: 'unknown',
      resource: 'unknown',
      candidates: ['host_ram', 'cgroup'],
    });
    expect(classify(attempt('', { exitCode: 137 }))?.kind).toBe('unknown');
    expect(readText('Killed')).toMatchObject({ kind: 'unknown', candidates: ['host_ram', 'cgroup'] });
    expect(readText('job ended with exit code 137')).toMatchObject({
      kind: 'unknown',
      candidates: ['cgroup', 'host_ram'],
    });
  });

  it('was the cgroup when its count has risen', () => {
    expect(classify({ ...silent, cgroupOomKills: 1 })).toMatchObject({ kind: 'cgroup', confidence: 'high' });
    expect(classify({ ...silent, cgroupOomKills: 1, cgroupLimitBytes: null })).toMatchObject({ kind: 'host_ram' });
  });

  it('was the cgroup though the launcher ended with a code of its own', () => {
    const evidence = attempt(traceback(['wait'], 'RuntimeError: a worker has gone'), { cgroupOomKills: 1 });
    expect(classify(evidence)?.kind).toBe('cgroup');
    expect(classify({ ...evidence, cgroupOomKills: 0 })?.kind).toBe('not_memory');
  });

  it('was probably memory when the tree stood at a limit', () => {
    const limits = { cgroupLimitBytes: 30 * GiB, hostRamBytes: 250 * GiB };
    expect(classify({ ...silent, ...limits, peakRamBytes: 29 * GiB })).toMatchObject({
      kind: 'cgroup',
      confidence: 'medium',
    });
    expect(classify({ ...silent, ...limits, peakRamBytes: 12 * GiB })?.kind).toBe('unknown');
    expect(classify({ ...silent, cgroupLimitBytes: null, hostRamBytes: 30 * GiB, peakRamBytes: 29 * GiB })?.kind).toBe(
      'host_ram',
    );
  });

  it('was probably the OOM killer when a launcher lived to report one rank', () => {
    const lines = [
      'E0203 04:05:06.789000 31 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: -9) local_rank: 5 (pid: 4021) of binary: /usr/bin/python',
      "[launch.py:88:sigkill_handler] ['/usr/bin/python', '-u', 't.py'] exits with return code = -9",
      '[rank: 1] Child process with PID 88 terminated with code -9. Forcefully terminating all other processes',
      '  traceback : Signal 9 (SIGKILL) received by PID 4021',
    ];
    for (const line of lines) {
      expect(classify(attempt(line)), line).toMatchObject({
        kind: 'host_ram',
        confidence: 'medium',
        candidates: ['cgroup', 'not_memory'],
      });
    }
  });

  it('was probably memory in the middle of host work', () => {
    const log = 'Running tokenizer on dataset:  44%|████      | 4400/10000 [01:00<01:20, 70.0 examples/s]\rKilled';
    expect(readText(log)).toMatchObject({ kind: 'host_ram', confidence: 'medium' });
  });

  it('is only what the launcher did to the peers of a failed rank', () => {
    const crash = traceback(['load'], 'ValueError: not enough labels');
    const peers = '  exitcode  : -9 (pid: 88)';
    expect(classify(attempt(`${crash}\n${peers}`))?.kind).toBe('not_memory');
    expect(classify(attempt(`${crash}\n[launch.py:14:sigkill_handler] Killing subprocess 4711`))?.kind).toBe(
      'not_memory',
    );
    const first = 'failed (exitcode: -9) local_rank: 1 (pid: 88) of binary: python';
    expect(classify(attempt(`${crash}\n${first}`))?.kind).toBe('host_ram');
  });

  it('does not hide an earlier line', () => {
    expect(classify(attempt(oom(), { exitCode: undefined, signal: 'SIGKILL' }))?.kind).toBe('vram_capacity');
  });
});

describe('other ends', () => {
  it('exit code 0 is no failure, without a word and with many', () => {
    expect(classify(attempt('', { exitCode: 0 }))).toBeUndefined();
    expect(classify(attempt(oom(), { exitCode: 0 }))).toBeUndefined();
  });

  it('a program that could not be started is not memory', () => {
    expect(classify(attempt('', { exitCode: undefined, startFailure: 'not-found' }))).toMatchObject({
      kind: 'not_memory',
      confidence: 'high',
    });
  });

  it('a request to end is not memory, unless memory had ended it before', () => {
    const asked = { exitCode: undefined, signal: 'SIGTERM', forwardedSignal: 'SIGTERM' };
    expect(classify(attempt('step 3', asked))).toMatchObject({ kind: 'not_memory', confidence: 'high' });
    expect(classify(attempt(oom(), asked))?.kind).toBe('vram_capacity');
  });

  it('a bus error points to shared memory, other faults to none', () => {
    expect(classify(attempt('', { exitCode: undefined, signal: 'SIGBUS' }))).toMatchObject({
      kind: 'shm',
      confidence: 'medium',
    });
    expect(classify(attempt('', { exitCode: 135 }))?.kind).toBe('shm');
    expect(classify(attempt('', { exitCode: 139 }))?.kind).toBe('not_memory');
  });

  it('nothing known is said as such', () => {
    expect(classify(attempt('all fine so far\n'))).toEqual({
      kind: 'unknown',
      resource: 'unknown',
      phase: 'unknown',
      confidence: 'low',
      candidates: [],
      evidence: [],
      numbers: {},
    });
  });

  it('many good steps before leave growth as a candidate', () => {
    const bar = ' 83%|########  | 830/1000 [09:10<01:50,  1.51it/s]';
    expect(readText(`${bar}\r${oom()}`)).toMatchObject({ kind: 'vram_capacity', candidates: ['vram_leak_growth'] });
    expect(readText(`${bar.replace('830/', '3/')}\r${oom()}`)?.candidates).toEqual([]);
  });

  it('reads evidence put together by hand', () => {
    const bare = { ...attempt(''), lines: [{ line: 3, text: oom(), rank: 1, stream: 'stderr' as const }] };
    expect(classify(bare)).toMatchObject({ kind: 'vram_capacity', evidence: [{ line: 3 }] });
    const tailOnly = { ...attempt(''), tail: traceback(['evaluation_loop'], oom()).split('\n') };
    expect(classify(tailOnly)).toMatchObject({ kind: 'vram_eval_spike' });
  });
});
