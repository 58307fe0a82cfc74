import type { ParameterGroup } from '../parameters.ts';
import { BF16, F32 } from '../tape/tape.ts';
import type { Explained, TermInput } from './terms.ts';

const dtypeText = ({ parameter: { dtype } }: ParameterGroup): string =>
  dtype === F32 ? 'fp32' : dtype === BF16 ? 'bf16' : 'fp16';

/** `fp32_parameters`, `bf16_parameters` … of the groups. */
function byDtype(groups: readonly ParameterGroup[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const group of groups) {
    const key = `${dtypeText(group)}_parameters`;
    sums[key] = (sums[key] ?? 0) + group.parameter.elements * group.count;
  }
  return sums;
}

/** Every parameter tensor in the dtype it is stored in, quantised layers, a reference model, buffers. */
export function explainWeights({ run, facts }: TermInput): Explained {
  const { plan, residents, sharding, values } = run;
  const { quantization } = values;
  const parts = ['Σ parameters × bytes of their dtype'];
  if (plan.quantisedBytes > 0) {
    parts.push(quantization?.bits === 4 ? 'packed 4-bit layers with their scales' : 'packed layers with their scales');
  }
  if (residents.referenceBytes > 0) parts.push('a frozen copy of the model for the objective');
  if (facts.description.bufferBytes > 0) parts.push('buffers');
  const spread = sharding.weightShare < 1 ? '; spread over the ranks' : '';
  return {
    formula: `${parts.join(' + ')}, each tensor rounded up to 512 bytes${spread}`,
    inputs: {
      ...byDtype(plan.groups),
      trained_parameters: plan.trainable,
      ...(plan.quantisedBytes > 0 ? { packed_bytes: plan.quantisedBytes } : {}),
      ...(residents.referenceBytes > 0 ? { reference_bytes: residents.referenceBytes } : {}),
      ...(facts.description.bufferBytes > 0 ? { buffer_bytes: facts.description.bufferBytes } : {}),
      ...(sharding.weightShare < 1 ? { ranks: Math.round(1 / sharding.weightShare) } : {}),
    },
    sources: [
      `transformers ${values.versions.transformers} model class of ${facts.modelType}`,
      ...(quantization ? ['bitsandbytes 0.50 functional.py quantize_4bit, nn/modules.py'] : []),
      ...(values.method === 'full' ? [] : [`peft ${values.versions.peft} tuners`]),
    ],
  };
}

/** A gradient for every trained parameter; at the peak those that are there by then. */
export function explainGradients({ run, bytes }: TermInput): Explained {
  const { plan, residents, sharding, values } = run;
  const trained = plan.groups.filter(({ parameter }) => parameter.trainable);
  const whole = sharding.accumulatesWhole && residents.accumulatedBytes > 0;
  const all = whole ? residents.accumulatedBytes : residents.gradientBytes;
  const some = bytes < all ? '; at the peak those of the layers that are done' : '';
  const spread = sharding.gradientShare < 1 && !whole ? ', spread over the ranks' : '';
  const kept = whole ? '; whole from one micro batch to the next' : '; kept from one micro batch to the next';
  const accumulated = values.gradientAccumulationSteps > 1 ? kept : '';
  return {
    formula: `one gradient a trained parameter, in its dtype${spread}${accumulated}${some}`,
    inputs: {
      ...byDtype(trained),
      all_gradients_bytes: all,
      gradient_accumulation_steps: values.gradientAccumulationSteps,
      ...(sharding.gradientShare < 1 ? { ranks: Math.round(1 / sharding.gradientShare) } : {}),
    },
    sources: [
      'https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/autograd/functions/accumulate_grad.h',
      ...(whole
        ? ['torch 2.13 distributed/fsdp/_runtime_utils.py _post_backward_hook; accelerate 1.15 accelerator.py no_sync']
        : []),
    ],
  };
}
