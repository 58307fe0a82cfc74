export type { HostInput, HostModel, HostTerms } from './host-input.ts';
export { hostModelOf } from './host-input.ts';
export { hostRam } from './stages.ts';
