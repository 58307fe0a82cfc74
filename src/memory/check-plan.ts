import { type Diagnostic, error } from '../core/index.ts';
import { type ModelFacts, type MoeOp, visitOps } from '../model/index.ts';
import { dataParallelSize, type PlanValues } from '../spec/index.ts';
import { targetNames } from './adapters/index.ts';
import { findOptimizer, refusalOf } from './optimizers/index.ts';
import type { ParameterPlan } from './parameters.ts';
import { perModel } from './per-model.ts';
import { versionFacts } from './versions.ts';

/** Everything about a plan that this estimator has no rule for, or that the trainer itself would refuse. */
export function checkPlan(values: PlanValues, facts: ModelFacts): Diagnostic[] {
  const problems: Diagnostic[] = [];
  const add = (code: string, message: string, help?: string): void => {
    problems.push(error(code, message, help ? { help } : {}));
  };
  const { method, quantization, attnImplementation, lossImpl } = values;
  const virtual = method === 'prompt_tuning' || method === 'prefix_tuning';
  if (virtual && !values.promptTuning) {
    add(
      'missing-prompt-tuning',
      `method ${method} needs its virtual tokens`,
      'say prompt_tuning: { num_virtual_tokens: 20 }',
    );
  }
  if (method === 'prefix_tuning' && values.gradientCheckpointing.enabled) {
    add('bad-setting', 'PEFT cannot train a prefix with gradient checkpointing', 'switch gradient_checkpointing off');
  }
  if ((method === 'lora' || method === 'qlora' || method === 'dora') && !values.lora) {
    add('missing-lora', `method ${method} needs lora settings`, 'say at least lora: { r: 16 }');
  }
  if (method === 'ia3' && !values.ia3) add('missing-ia3', 'method ia3 needs ia3 settings');
  if (method === 'qlora' && !quantization) {
    add('missing-quantization', 'method qlora needs quantization settings', 'say quantization: { bits: 4 }');
  }
  if (method === 'full' && quantization) {
    add('quantised-full', 'quantised weights cannot be trained in full', 'use method qlora');
  }
  if (quantization && values.ownModules === 'litgpt' && (lossImpl === 'fused' || lossImpl === 'chunked')) {
    add(
      'unsupported-loss',
      `a ${lossImpl} loss multiplies by the head's weight, which LitGPT quantises with the rest`,
      'say loss_impl: chunked_logits, which is its own',
    );
  }
  if (attnImplementation === 'flex_attention') {
    add('unsupported-attention', 'flex_attention is compiled: what it keeps is not described', 'use sdpa');
  }
  const { kernels, checkpoints } = facts.description;
  if (checkpoints === false && values.gradientCheckpointing.enabled) {
    add(
      'bad-setting',
      `transformers has no gradient checkpointing for ${facts.modelType}`,
      'switch gradient_checkpointing off',
    );
  }
  if (attnImplementation !== 'eager' && attnImplementation !== 'sdpa' && kernels && !kernels.includes('flash')) {
    add('unsupported-attention', `a ${facts.modelType} model has no ${attnImplementation}`, 'use eager');
  }
  if (!findOptimizer(values.optim)) {
    add('unsupported-optimizer', `optimizer ${values.optim} cannot be estimated: ${refusalOf(values.optim)}`);
  }
  problems.push(...checkLayerwise(values));
  const count = (name: string, value: number): void => {
    if (!Number.isSafeInteger(value) || value < 1)
      add('bad-setting', `${name} must be a positive integer, not ${value}`);
  };
  count('per_device_train_batch_size', values.perDeviceTrainBatchSize);
  count('max_length', values.maxLength);
  count('max_target_length', values.maxTargetLength ?? 1);
  count('gradient_accumulation_steps', values.gradientAccumulationSteps);
  problems.push(
    ...checkForm(values, facts),
    ...checkPositions(values, facts),
    ...checkExperts(values, facts),
    ...checkRefused(values, facts),
  );
  return problems;
}

/** transformers refuses layer-wise optimizers beside accumulation and DDP (trainer_optimizer.py `_setup_low_rank_optimizer`). */
function checkLayerwise({ optim, gradientAccumulationSteps, distributed }: PlanValues): Diagnostic[] {
  if (!optim.endsWith('_layerwise')) return [];
  const plain = optim.replace(/_layerwise$/, '');
  if (gradientAccumulationSteps > 1) {
    return [
      error('bad-setting', `optimizer ${optim} cannot accumulate gradients: it steps in the backward pass`, {
        help: `set gradient_accumulation_steps to 1, or use ${plain}`,
      }),
    ];
  }
  if (dataParallelSize(distributed) > 1 && distributed.strategy !== 'none') {
    return [error('bad-setting', `optimizer ${optim} does not run on several GPUs`, { help: `use ${plain}` })];
  }
  return [];
}

/** The class that the objective's trainer loads has to exist for this kind of model. */
function checkForm({ objective }: PlanValues, { modelType, description }: ModelFacts): Diagnostic[] {
  const form = description.form ?? 'causal';
  if (objective === 'classification' || objective === 'reward') return [];
  if (objective === 'seq2seq' && form !== 'seq2seq') {
    return [
      error('unsupported-objective', `objective seq2seq needs an encoder and a decoder, which ${modelType} has not`, {
        help: 'set objective to clm or sft, or name an encoder-decoder model',
      }),
    ];
  }
  if (objective !== 'seq2seq' && form === 'seq2seq') {
    return [
      error(
        'unsupported-objective',
        `${modelType} has an encoder and a decoder: objective ${objective} does not fit it`,
        {
          help: 'set objective to seq2seq or classification',
        },
      ),
    ];
  }
  if (form === 'masked') {
    return [
      error('unsupported-objective', `transformers has no causal language model for ${modelType}`, {
        help: 'set objective to classification',
      }),
    ];
  }
  return [];
}

/** Learned positions end; rotary ones do not. */
function checkPositions(values: PlanValues, facts: ModelFacts): Diagnostic[] {
  const rows = positionsOf(facts.description);
  if (rows === undefined || values.maxLength <= rows) return [];
  return [
    error('too-long', `max_length ${values.maxLength} is more than the ${rows} positions of the model`, {
      help: `set max_length to at most ${rows}`,
    }),
  ];
}

/** Rows of the first table of positions. */
const positionsOf = perModel(({ encoder, embedding }) => {
  let rows: number | undefined;
  visitOps([...(encoder?.embedding ?? []), ...embedding], '', (op) => {
    if (rows === undefined && op.op === 'embedding' && op.by !== 'tokens' && !op.segments) rows = op.rows;
  });
  return rows;
});

/** Layers whose weights the fused kernels take without their module (Mamba): PEFT raises. */
function checkRefused(values: PlanValues, { description: { peft } }: ModelFacts): Diagnostic[] {
  if (!values.lora || values.method === 'full' || !peft.refused) return [];
  const targets = values.lora.targetModules;
  const asked = peft.refused.filter(
    (name) =>
      targets === 'all-linear' || (Array.isArray(targets) && targets.some((t) => t === name || t.endsWith(`.${name}`))),
  );
  if (asked.length === 0) return [];
  return [
    error('bad-targets', `PEFT puts no LoRA on ${asked.join(', ')} of this architecture`, {
      help: `leave ${asked.join(', ')} out of target_modules`,
    }),
  ];
}

/** PEFT wraps stacked experts only without dropout, and gate and up projection only together. */
function checkExperts(values: PlanValues, facts: ModelFacts): Diagnostic[] {
  const { lora } = values;
  if (!lora || values.method === 'full' || versionFacts(values.versions).loopsExperts) return [];
  const names = expertNamesOf(facts.description);
  if (!names) return [];
  const targets = targetNames(facts.description, values);
  const asked = (name: string): boolean =>
    targets === 'all' || targets.some((t) => t === name || t.endsWith(`.${name}`));
  const { gate, up, down, router } = names;
  if (asked(gate) !== asked(up)) {
    return [
      error('bad-targets', `PEFT cannot target ${gate} without ${up}: both are one weight`, {
        help: `name both ${gate} and ${up} in target_modules, or neither`,
      }),
    ];
  }
  if (lora.loraDropout > 0 && [gate, down, router].some(asked)) {
    return [error('bad-targets', 'PEFT cannot use lora_dropout on stacked experts', { help: 'set lora_dropout to 0' })];
  }
  return [];
}

/** What PEFT calls the projections of stacked experts. */
const expertNamesOf = perModel(({ kinds }) => {
  let names: MoeOp['targetNames'];
  for (const ops of kinds) {
    visitOps(ops, '', (op) => {
      if (op.op === 'moe') names = op.targetNames;
    });
  }
  return names;
});

/** PEFT raises when nothing matches. */
export function checkTargets(values: PlanValues, plan: ParameterPlan, facts: ModelFacts): Diagnostic[] {
  if (values.method === 'full' || values.promptTuning || plan.matchedTargets > 0) return [];
  const targets = values.ia3?.targetModules ?? values.lora?.targetModules ?? [];
  const named = typeof targets === 'string' ? targets : targets.join(', ');
  return [
    error('no-target-modules', `target_modules ${named} matches nothing in a ${facts.modelType} model`, {
      help: 'use target_modules: all-linear, or name layers of this model',
    }),
  ];
}
