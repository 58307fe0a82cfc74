export * from './contract.ts';
export { readYaml, type YamlEntry, type YamlFile, type YamlHazard } from './yaml-read.ts';
