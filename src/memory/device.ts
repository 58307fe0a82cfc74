import { MiB } from '../core/index.ts';

/** What is known of the card. */
export interface DeviceFacts {
  readonly computeCapability?: { readonly major: number; readonly minor: number };
  readonly name?: string;
}

export interface ContextBytes {
  readonly bytes: number;
  readonly lowBytes: number;
  readonly highBytes: number;
}

/** Device memory of one process that PyTorch's allocator does not count: CUDA context, kernels, cuBLAS. */
export function contextBytes(device: DeviceFacts): ContextBytes {
  const major = device.computeCapability?.major;
  const [bytes, low, high] = major === undefined ? [500, 300, 900] : major >= 9 ? [600, 450, 900] : [450, 300, 700];
  return { bytes: bytes * MiB, lowBytes: low * MiB, highBytes: high * MiB };
}
