export { type BareReading, readBareFile, readBareFilePartly } from './bare-file.ts';
export * from './contract.ts';
export { parseGivenSettings, readPolicyFile } from './native/given.ts';
export { type NativeConfig, type NativePolicy, parseNativePlan, readNativeConfig } from './native/read.ts';
export { pythonFromShebang, pythonOf, type ShebangPort } from './python-of.ts';
export { readLaunch, readLaunchPartly } from './read-launch.ts';
export { quoteCommand, splitCommand } from './split-command.ts';
export { writeLaunch } from './write-launch.ts';
export { readYaml, type YamlEntry, type YamlFile, type YamlHazard } from './yaml-read.ts';
