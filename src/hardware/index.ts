export * from './hardware.ts';
