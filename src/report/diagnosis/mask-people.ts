import { maskSecrets } from '../mask-secrets.ts';

/** Folders of people, on every system. */
const HOMES: readonly (readonly [RegExp, string])[] = [
  [/(\/(?:home|Users|data\/home|mnt\/home|nfs\/home|scratch|fsx|lustre\/home)\/)[^/\s:'",)\]]+/g, '$1USER'],
  [/([A-Za-z]:\\+Users\\+)[^\\\s:'",)\]]+/g, '$1USER'],
  [/(\/(?:mnt|media|run\/user)\/)[^/\s:'",)\]]+/g, '$1VOLUME'],
];

const ADDRESSES: readonly (readonly [RegExp, string])[] = [
  [/\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b/g, 'USER@HOST'],
  [/(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.]|\w)/g, 'ADDRESS'],
  [/(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![\w:])/gi, 'ADDRESS'],
  // NCCL `host:123:456 [0]`, syslog `Mar  4 10:00:00 host kernel:`, slurm `srun: error: host: task 0`
  [/^[\w.-]+(?=:\d+:\d+ \[\d+\])/gm, 'HOST'],
  [/^([A-Z][a-z]{2}\s+\d{1,2} \d\d:\d\d:\d\d )\S+/gm, '$1HOST'],
  [/(\bsrun: error: )[\w.-]+(?=:)/g, '$1HOST'],
  [/(\bslurmstepd-)[\w.-]+(?=:)/g, '$1HOST'],
  [/(\b(?:hostname|nodename|nodelist|master_addr|host(?==))["']?\s*[=:]\s*["']?)[\w.-]+/gi, '$1HOST'],
  [/(\b(?:https?|s3|gs|ssh|tcp):\/\/)(?!huggingface\.co|pytorch\.org|github\.com)[\w.-]+/g, '$1HOST'],
  [/(\b(?:username|logname|user(?==))["']?\s*[=:]\s*["']?)[\w.-]+/gi, '$1USER'],
];

/**
 * Text that may be shown to strangers: no secrets, no home folders, no addresses, hosts or user names. `names`: what this machine
 * knows its user and itself by.
 */
export function maskPeople(
  text: string,
  names: readonly { readonly name: string; readonly as: string }[] = [],
): string {
  const known = names
    .filter(({ name }) => name.length >= 3 && name !== 'root' && name !== 'localhost')
    .reduce(
      (masked, { name, as }) =>
        masked.replace(new RegExp(`(?<![\\w])${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w])`, 'g'), as),
      maskSecrets(text),
    );
  return [...HOMES, ...ADDRESSES].reduce((masked, [pattern, as]) => masked.replace(pattern, as), known);
}
