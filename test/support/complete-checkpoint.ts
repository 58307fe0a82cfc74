const encode = (header: object, dataBytes: number): Uint8Array => {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
};
/** An empty zip: its end record alone. */
const ZIP = new Uint8Array([0x50, 0x4b, 5, 6, ...Array.from({ length: 18 }, () => 0)]);

/** The files of a checkpoint of transformers that is whole. */
export const completeCheckpoint = (folder: string, step: number): Record<string, string | Uint8Array> => ({
  [`${folder}/checkpoint-${step}/trainer_state.json`]: JSON.stringify({ global_step: step }),
  [`${folder}/checkpoint-${step}/model.safetensors`]: encode(
    { w: { dtype: 'F32', shape: [2], data_offsets: [0, 8] } },
    8,
  ),
  [`${folder}/checkpoint-${step}/optimizer.pt`]: ZIP,
});
