import type { MeasuredRow } from './measured-rows.ts';

const bytesPerParameter = ({ peak_gib, params_b }: MeasuredRow): number =>
  params_b ? (peak_gib * 2 ** 30) / (params_b * 1e9) : Number.POSITIVE_INFINITY;

/** What snug.yaml has no word for. Reasons, by what the source did. */
export function outOfScope(row: MeasuredRow): string | undefined {
  const { extras, trainer, source } = row;
  if (/unsloth/i.test(trainer)) return 'Unsloth: patched modules, real lengths not published';
  if (extras.cp || extras.tp || extras.pp) return 'tensor, pipeline or context parallel';
  if (extras.float8 || /fp8|fp4|int8 training/i.test(String(extras.precision ?? ''))) return 'float8 training';
  if (typeof row.grad_checkpointing === 'string') return 'selective checkpointing of single ops';
  if (
    row.method === 'full' &&
    /^AdamW$/.test(row.optimizer ?? '') &&
    extras.world_size === 1 &&
    bytesPerParameter(row) < 8
  ) {
    return 'less than 8 bytes a parameter: more devices or another optimizer than it says';
  }
  if (/Liger-Kernel/.test(source) && /gemma/i.test(row.model))
    return 'logits alone are more than all of it: rows are shorter than it states';
  if (extras.config_devices && extras.config_devices !== extras.world_size) return 'two numbers of devices are stated';
  if (/litgpt/.test(source) && extras.fsdp && row.method !== 'full')
    return 'more memory on two devices than on one: the model was loaded whole';
  // Every run of that benchmark but full fine-tuning, whose optimizer step is higher than its evaluation.
  if (/ms-swift/.test(source) && row.peak_metric === 'reserved' && row.method !== 'full') {
    return 'its reserved memory grows by 11 tensors of logits whatever the size of the model: an evaluation whose settings are not published';
  }
  if (row.method_detail.galore_rank || row.method_detail.lisa_activated_layers) {
    return 'GaLore and LISA: which layers and projections is not published';
  }
  if (extras.parallel) return 'layers spread over cards by device_map';
  if (/lora-fa/.test(row.optimizer ?? '')) return 'LoRA-FA: the optimizer switches off the gradients of A';
  if (/^int8$/.test(row.weights_dtype ?? '')) return 'weights trained in int8';
  if (/torchtune/.test(source) && row.seq_kind === 'max with padding')
    return 'rows far shorter than the length it states';
  if (/bare fwd/.test(trainer)) return 'no optimizer step';
  if (row.seq_kind === 'unknown' || row.grad_checkpointing === null) return 'length or checkpointing not published';
  if (/GPT|AWQ/.test(String(row.method_detail.quant ?? '')) && /HQQ/.test(source)) return 'quantisation not described';
  return undefined;
}
