import type { Phrase } from './phrase.ts';

/** The sums of an allocator's message, one sentence each. */
export const SUMS = {
  asked: { en: '{tried} asked for, {free} free: {short} short', zh: '申请 {tried}，空闲 {free}：缺 {short}' },
  askedOnly: { en: '{tried} asked for', zh: '申请 {tried}' },
  segment: {
    en: '{tried} is the smallest piece PyTorch asks the driver for: it says only that the card is full, not that {tried} is missing',
    zh: '{tried} 是 PyTorch 向驱动申请的最小单位：只说明显存已满，不代表只差 {tried}',
  },
  near: { en: 'a near miss: one step of one setting is enough', zh: '只差一点：把一项设置调小一档就够了' },
  own: {
    en: 'of {total} on the card, this run holds {allocated} in tensors and {stranded} reserved but not in use',
    zh: '显卡共 {total}：本训练张量占 {allocated}，已保留但未使用 {stranded}',
  },
  ownTensors: {
    en: 'of {total} on the card, this run holds {allocated} in tensors',
    zh: '显卡共 {total}：本训练张量占 {allocated}',
  },
  beside: {
    en: '{size} more are CUDA context, libraries and pools outside the allocator',
    zh: '另有 {size} 是 CUDA 上下文、库和分配器之外的内存池',
  },
  others: { en: 'other processes hold {size}', zh: '其他进程占用 {size}' },
  otherOne: { en: 'process {pid} holds {size}', zh: '进程 {pid} 占用 {size}' },
  stranded: {
    en: '{stranded} lie reserved in pieces and would have served the {tried}: fragmentation',
    zh: '已保留的 {stranded} 零散在各段中，本可满足 {tried} 的申请：显存碎片化',
  },
  notStranded: {
    en: 'fragmentation is not the cause, whatever the hint in the message says: only {stranded} lie unused',
    zh: '不是碎片化（尽管报错信息有此提示）：未使用的只有 {stranded}',
  },
  impossible: {
    en: 'no card with {total} could serve {tried}, even empty: a bug or a wrong size, not a lack of memory',
    zh: '即使空卡（{total}）也无法满足 {tried}：是程序错误或尺寸错误，不是显存不够',
  },
  'garbage-size': {
    en: 'the size asked for is nonsense (more than an exabyte): an error before it left garbage in a shape',
    zh: '申请的大小没有意义（超过 1 EB）：更早的错误破坏了张量形状',
  },
  'more-than-card': {
    en: 'more is said to be in use than the card has (virtual memory of a sleeping engine): these figures are not calculated with',
    zh: '报告的占用量超过显卡容量（休眠引擎的虚拟内存）：不对这些数字做计算',
  },
  'own-share-unknown': {
    en: 'the figure for this process itself is not real (WSL and some containers do not know it); it is left out',
    zh: '本进程的占用数字不真实（WSL 和某些容器无法得知），已忽略',
  },
} as const satisfies Record<string, Phrase>;
