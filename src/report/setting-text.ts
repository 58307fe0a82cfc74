import type {
  Distributed,
  GradientCheckpointing,
  Ia3,
  Lora,
  Quantization,
  SettingName,
  Versions,
} from '../spec/index.ts';

const shortList = (names: readonly string[], most = 3): string =>
  names.length <= most ? names.join(', ') : `${names.slice(0, most).join(', ')} and ${names.length - most} more`;

const lora = ({ r, loraAlpha, targetModules, modulesToSave }: Lora): string => {
  const targets = typeof targetModules === 'string' ? targetModules : shortList(targetModules);
  return `r ${r}, alpha ${loraAlpha}, ${targets}${modulesToSave.length > 0 ? `, trains ${shortList(modulesToSave)}` : ''}`;
};

const quantization = ({ bits, quantType, doubleQuant, computeDtype }: Quantization): string =>
  `${bits} bits ${quantType}${doubleQuant ? ', double' : ''}, computes in ${computeDtype}`;

const checkpointing = ({ enabled, everyNLayers, offload }: GradientCheckpointing): string =>
  enabled ? `on${everyNLayers > 1 ? `, every ${everyNLayers} layers` : ''}${offload ? ', offloaded' : ''}` : 'off';

const distributed = ({ nodes, processesPerNode, strategy, offload }: Distributed): string => {
  const processes = `${nodes > 1 ? `${nodes} nodes × ` : ''}${processesPerNode} process${processesPerNode > 1 ? 'es' : ''}`;
  const single = nodes * processesPerNode === 1 && (strategy === 'ddp' || strategy === 'none');
  return `${processes}${single ? '' : `, ${strategy}`}${offload.length > 0 ? `, ${offload.join(' and ')} offloaded` : ''}`;
};

const ia3 = ({ targetModules }: Ia3): string => shortList(targetModules);
const versions = (found: Versions): string =>
  Object.entries(found)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');

/** Settings whose absence says something. */
const ABSENT: Partial<Record<SettingName, string>> = {
  quantization: 'none',
  lora: 'none',
  ia3: 'none',
  syncsEachMicroBatch: 'no',
};

/** A setting's value for people, on one line. */
export function settingText(name: SettingName, value: unknown): string {
  if (value === null || value === undefined) {
    return ABSENT[name] ?? 'not known';
  }
  switch (name) {
    case 'lora':
      return lora(value as Lora);
    case 'ia3':
      return ia3(value as Ia3);
    case 'quantization':
      return quantization(value as Quantization);
    case 'gradientCheckpointing':
      return checkpointing(value as GradientCheckpointing);
    case 'distributed':
      return distributed(value as Distributed);
    case 'versions':
      return versions(value as Versions);
    default:
      if (value === true) return 'yes';
      if (value === false) return 'no';
      return value === '' ? 'none' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  }
}
