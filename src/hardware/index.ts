export { bf16Warnings } from './bf16.ts';
export { type MemoryCgroup, readCgroupOomKills, readMemoryCgroups } from './cgroup.ts';
export { type DetectOptions, detectHardware } from './detect-hardware.ts';
export { type CatalogueGpu, GPU_CATALOGUE } from './gpu-catalogue.ts';
export { resolveGpuName, typedGpuName } from './gpu-name.ts';
export * from './hardware.ts';
export { readHostMemory } from './host-memory.ts';
export { type GpuProcess, processesOnGpus, sampleVram } from './nvidia-smi.ts';
export { readNvidiaSmiText, type ShownCards } from './nvidia-smi-text.ts';
