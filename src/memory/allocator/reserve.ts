import { Condenser, type Stretch } from './condense.ts';
import { GroupedAllocator, longer, NONE } from './grouped-allocator.ts';
import { Pools, SMALL_UNITS, UNIT } from './pools.ts';
import { FIRST_ID, INPUT_ID, PRODUCT_ID, type ScriptEntry } from './script.ts';
import { COPIES, type Item, shorten } from './shorten.ts';

/** Equal tensors. */
export interface TensorList {
  readonly bytes: number;
  readonly count: number;
}

export interface ReserveInput {
  /** Puts there what is made before the first step. */
  readonly load: (pools: Pools) => void;
  /** What else is there throughout, bytes. */
  readonly otherBytes: number;
  readonly script: readonly ScriptEntry[];
  /** Made by the first optimizer step: `copies` of each tensor, one after the other. */
  readonly states: readonly (TensorList & { readonly copies: number })[];
  /** Made and freed by every optimizer step. */
  readonly temporaries: readonly TensorList[];
  readonly steps: number;
  /** First layers of a kind that are played one by one. */
  readonly lead: number;
  /**
   * FSDP: what one device keeps of a layer's gradients. 0: they go at once into buffers that are there throughout, as DeepSpeed's.
   * undefined: gradients stay as they are.
   */
  readonly gradientShare: number | undefined;
  /** One cuBLAS workspace, bytes: made by each thread's first product, and kept. */
  readonly workspaceBytes: number;
  /** A segment that the first loss leaves behind, bytes; 0: none. */
  readonly lossSegmentBytes: number;
}

/** One estimate follows the other: they share the room. */
const condenser = new Condenser();
const pools = new Pools();
let live = new Int32Array(2048);
/** Pool of FSDP's reduce-scatter stream. */
const reduced = new GroupedAllocator();

/** Bytes reserved after `steps` steps. */
export function reservedBytes(input: ReserveInput): number {
  condenser.clear();
  const { items, layers } = shorten(input.script, condenser, input.lead);
  pools.clear();
  reduced.clear();
  input.load(pools);
  const player = new Player(input, layers);
  for (let step = 0; step < input.steps; step += 1) {
    const start = pools.small;
    player.play(items, step === 0 ? input.lossSegmentBytes : 0);
    pools.small = start;
    if (step === 0) for (const { bytes, count, copies } of input.states) pools.allocate(bytes, count * copies);
    const after = pools.small;
    const temporaries = input.temporaries.map(({ bytes, count }) => pools.allocate(bytes, count));
    for (const allocation of temporaries) pools.release(allocation);
    pools.small = after;
    // zero_grad: what the backward pass has left are gradients.
    player.clear();
  }
  return input.otherBytes + pools.reserved + reduced.reserved;
}

/** Layers that the host is ahead of the device: FSDP waits for the second last gathering before it starts another. */
const LAYERS_AHEAD = 2;

/** Plays steps on one pool. */
class Player {
  private readonly slots: number;
  private readonly inputs: Int32Array;
  private lastOutput = NONE;
  private lastGradient = NONE;
  private readonly multiplied = new Set<ScriptEntry['kind']>();
  /** Shards of gradients last until the step ends. */
  private shards: number[] = [];
  private joined: number[] = [];

  constructor(
    private readonly input: ReserveInput,
    layers: number,
  ) {
    this.slots = condenser.size;
    while (this.slots * COPIES > live.length) live = longer(live);
    live.fill(NONE, 0, this.slots * COPIES);
    this.inputs = new Int32Array(layers * COPIES).fill(NONE);
  }

  play(items: readonly Item[], lossSegmentBytes: number): void {
    let turned = false;
    for (const item of items) {
      if (item.kind === 'backward' && !turned) {
        turned = true;
        if (lossSegmentBytes > 0) {
          const { large } = pools;
          large.release(large.newSegments(Math.ceil(lossSegmentBytes / UNIT)));
        }
      }
      const { stretch, count } = item;
      pools.addSmall(stretch.smallPeak + (count - 1) * stretch.smallEnd, count * stretch.smallEnd);
      if (item.whole) this.playOne(item);
      else this.playMany(item);
    }
    for (const allocation of this.joined.splice(0)) pools.release(allocation);
  }

  private playOne({ stretch, kind, copy, layer, resultSlot }: Item): void {
    const { inputs } = this;
    const { large } = pools;
    const offset = copy * this.slots;
    const own = layer * COPIES + copy;
    if (kind === 'forward' && this.lastOutput !== NONE) inputs[own] = this.lastOutput;
    const { codes, units } = condenser;
    for (let i = stretch.from; i < stretch.to; i += 1) {
      const slot = codes[i]!;
      if (slot > 0) live[offset + slot] = large.allocate(units[i]!);
      else if (slot <= -FIRST_ID) this.free(live, offset - slot);
      else if (slot === -INPUT_ID) this.free(inputs, own);
      else if (slot === PRODUCT_ID) this.multiply(kind);
      else {
        if (this.lastGradient !== NONE) large.release(this.lastGradient);
        this.lastGradient = NONE;
      }
    }
    let result = NONE;
    if (resultSlot !== 0) {
      result = live[offset + resultSlot]!;
      live[offset + resultSlot] = NONE;
    }
    if (kind === 'forward') this.lastOutput = result;
    else if (result !== NONE) this.lastGradient = result;
    const { gradientShare } = this.input;
    // FSDP reduces the gradients of head and embedding together, at the end.
    if (kind === 'backward' && gradientShare !== undefined && (layer > 0 || gradientShare === 0))
      this.reduce(stretch, offset);
  }

  /** What is kept of equal layers, and at the way back first what they free. */
  private playMany({ stretch, kind, copy, layer, resultSlot, count }: Item): void {
    const { inputs } = this;
    const { large } = pools;
    const offset = copy * this.slots;
    const own = layer * COPIES + copy;
    for (const slot of stretch.freed) this.free(live, offset + slot);
    if (kind === 'backward' && stretch.freesInput) this.free(inputs, own);
    if (kind === 'backward' && this.input.gradientShare !== undefined) {
      const bytes = this.leftBytes(stretch, (slot) => slot !== resultSlot);
      for (const slot of stretch.renewed) this.free(live, offset + slot);
      if (bytes > 0) this.shard(bytes, count);
      return;
    }
    for (const slot of stretch.kept) {
      const units = condenser.sizes[slot]!;
      if (slot !== resultSlot) live[offset + slot] = large.allocate(units, count);
      else if (kind === 'forward' && !stretch.freesInput) inputs[own] = large.allocate(units, count);
    }
  }

  /** Gradients of one layer become one tensor, and that a shard on a stream of its own. */
  private reduce(stretch: Stretch, offset: number): void {
    const bytes = this.leftBytes(stretch, (slot) => live[offset + slot] !== NONE);
    if (bytes === 0) return;
    if (this.input.gradientShare! > 0) this.joined.push(pools.allocate(bytes));
    for (const slot of stretch.kept) this.free(live, offset + slot);
    for (const slot of stretch.renewed) this.free(live, offset + slot);
    this.shard(bytes, 1);
    if (this.joined.length > LAYERS_AHEAD) pools.release(this.joined.shift()!);
  }

  /** What a stretch leaves in slots for which `counts` holds, bytes. */
  private leftBytes({ kept, renewed }: Stretch, counts: (slot: number) => boolean): number {
    let units = 0;
    for (const slots of [kept, renewed]) {
      for (const slot of slots) if (counts(slot)) units += condenser.sizes[slot]!;
    }
    return units * UNIT;
  }

  private shard(bytes: number, count: number): void {
    const units = Math.ceil((bytes * this.input.gradientShare!) / UNIT);
    if (units > SMALL_UNITS) this.shards.push(reduced.allocate(units, count));
  }

  private multiply(thread: ScriptEntry['kind']): void {
    // The autograd engine runs in a thread with a handle of its own.
    if (this.multiplied.has(thread)) return;
    this.multiplied.add(thread);
    pools.allocate(this.input.workspaceBytes);
  }

  private free(column: Int32Array, at: number): void {
    const allocation = column[at]!;
    if (allocation === NONE) return;
    column[at] = NONE;
    pools.large.release(allocation);
  }

  clear(): void {
    const { inputs } = this;
    const { large } = pools;
    for (const shard of this.shards.splice(0)) reduced.release(shard);
    for (let at = 0; at < this.slots * COPIES; at += 1) this.free(live, at);
    for (let at = 0; at < inputs.length; at += 1) this.free(inputs, at);
    for (const allocation of [this.lastOutput, this.lastGradient]) if (allocation !== NONE) large.release(allocation);
    this.lastOutput = NONE;
    this.lastGradient = NONE;
  }
}
