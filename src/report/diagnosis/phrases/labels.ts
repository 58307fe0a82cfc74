import type { Phrase } from './phrase.ts';

/** Words around the facts. */
export const LABELS = {
  answer: { en: 'answer', zh: '结论' },
  sure: { en: 'confidence', zh: '可信度' },
  high: { en: 'high', zh: '高' },
  medium: { en: 'medium', zh: '中' },
  low: { en: 'low', zh: '低' },
  evidence: { en: 'evidence', zh: '依据' },
  sums: { en: 'the figures', zh: '数字说明' },
  candidates: { en: 'could be, likeliest first', zh: '可能的原因（按可能性排序）' },
  alsoPossible: { en: 'also possible: {kinds}', zh: '也有可能：{kinds}' },
  todo: { en: 'what to do, in this order', zh: '处理步骤（按顺序）' },
  settings: { en: 'settings that fit, for this run', zh: '适合本次训练的设置' },
  look: { en: 'to look closer, paste', zh: '进一步检查（可直接粘贴）' },
  notes: { en: 'notes', zh: '备注' },
  line: { en: 'line {line}', zh: '第 {line} 行' },
  rank: { en: 'rank {rank}', zh: 'rank {rank}' },
  saves: { en: 'saves about {size}', zh: '约节省 {size}' },
  before: { en: 'as it was: {size} predicted', zh: '原设置：预计 {size}' },
  after: { en: 'then: {size} predicted', zh: '修改后：预计 {size}' },
  versions: { en: 'versions', zh: '版本' },
  launch: { en: 'settings of the run', zh: '训练设置' },
} as const satisfies Record<string, Phrase>;

/** What is said of the input rather than of the failure. */
export const NOTES = {
  empty: { en: '{file} is empty', zh: '{file} 是空文件' },
  nothing: {
    en: 'no failure of any kind was recognised in {lines} lines',
    zh: '在 {lines} 行中没有识别到任何失败',
  },
  finished: { en: 'the run seems to have ended well', zh: '训练似乎已正常结束' },
  recovered: {
    en: 'memory ran out at line {line}, but the trainer dealt with it and went on',
    zh: '第 {line} 行曾出现显存不足，但训练程序已自行处理并继续',
  },
  'cut-off': {
    en: '{file} breaks off in the middle of a line: what came after is not known',
    zh: '{file} 在一行中间中断，之后的内容未知',
  },
  'cut-archive': {
    en: '{file} is a compressed file that breaks off early; what could be read was used',
    zh: '{file} 是不完整的压缩文件，已使用可读取的部分',
  },
  'other-run': {
    en: 'the kernel log tells of another killed process ({name}, pid {pid}); it is not counted',
    zh: '内核日志中另有被杀死的进程（{name}，pid {pid}），未计入',
  },
  killed: {
    en: 'the kernel log proves it: {name} (pid {pid}) was killed with {size} resident',
    zh: '内核日志可以证明：{name}（pid {pid}）被杀死，当时常驻内存 {size}',
  },
  'card-now': {
    en: 'GPU {index} ({name}) by nvidia-smi: {used} of {total} in use',
    zh: '据 nvidia-smi，GPU {index}（{name}）：已用 {used}，共 {total}',
  },
  'card-process': {
    en: 'on GPU {index}: {name} (pid {pid}) holds {size}',
    zh: 'GPU {index} 上：{name}（pid {pid}）占用 {size}',
  },
  'run-ended': {
    en: 'run folder {folder}: attempt {attempt} ended {end}',
    zh: '运行目录 {folder}：第 {attempt} 次尝试以 {end} 结束',
  },
  'peak-ram': {
    en: '{size} of host RAM was seen in all processes of the run',
    zh: '本次训练的所有进程共占用主机内存 {size}',
  },
  'not-priced': { en: 'the settings could not be priced: {reason}', zh: '无法为设置估算显存：{reason}' },
} as const satisfies Record<string, Phrase>;

export type NoteId = keyof typeof NOTES;

/** Said where no permitted setting is enough, and of host RAM where it was estimated. */
export const LARGER_CARD = {
  ram: {
    en: 'host RAM: about {size} must be free for these settings, all ranks of a machine together',
    zh: '主机内存：按当前设置，一台机器上所有 rank 合计约需 {size} 可用内存',
  },
  named: {
    en: 'no permitted setting is enough: a GPU with at least {size}, for example {cards}',
    zh: '允许的设置都不够：需要至少 {size} 显存的显卡，例如 {cards}',
  },
  unnamed: {
    en: 'no permitted setting is enough: at least {size} of GPU memory, which is several cards (FSDP, ZeRO)',
    zh: '允许的设置都不够：至少需要 {size} 显存，即多张显卡（FSDP、ZeRO）',
  },
} as const satisfies Record<string, Phrase>;
