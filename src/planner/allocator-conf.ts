/** One `key:value` of PYTORCH_CUDA_ALLOC_CONF. */
export interface AllocatorSetting {
  readonly key: string;
  readonly value: string;
  /** As it was written. */
  readonly text: string;
}

/** Splits an allocator setting at its commas; those inside `[…]` (roundup_power2_divisions) belong to a value. */
export function assignments(conf: string): readonly AllocatorSetting[] {
  return conf
    .split(/,(?![^[]*\])/)
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map((text) => {
      const [key = '', ...value] = text.split(':');
      return { key: key.trim(), value: value.join(':').trim(), text };
    });
}
