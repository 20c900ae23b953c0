/** Plans a step: which launches it takes. A pure function of options, parameters with gradients, and their states. */
import type { Scalar, Slice } from "../backend/memory";
import type { Kernel } from "../backend/spec";
import type { Device } from "../device/device";
import type { ScalarSource } from "../device/scalar-source";
import { OptError } from "../errors/errors";
import { cast } from "../ops";
import { NUMBERS } from "../rule/interpret";
import { rewritten } from "../rule/rewrite";
import type { Rewrite, Rule } from "../rule/rule";
import { elementsBefore } from "../tensor/placement";
import type { Storage } from "../tensor/storage";
import type { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "./algorithm";
import { advanced } from "./check-rule";
import type { Regularizer } from "./gradients/regularizer";
import { addedDecay } from "./modifications/check";
import { STAGE_SCALARS } from "./modifications/update";
import type { PreparedParameter } from "./prepare";
import { hasMaster, markInSync } from "./state/master";
import { formatsOf, MASTER, type Slot, type StepCounter, stochasticRounding, storedFormat } from "./state/state";

/** What the device says of a step: tensors of one element. */
export interface Around {
  /** 1 / loss scale. */
  readonly unscale?: Tensor | undefined;
  /** Of all unscaled gradients in groups that limit it, of several optimizers. */
  readonly norm?: Tensor | undefined;
  /** By which the norm is clipped. */
  readonly factor?: Tensor | undefined;
  /** Above 0 to skip the step. */
  readonly skip?: Tensor | undefined;
  /** The same, as the host has read it. */
  skipped?(): boolean;
  /** Gradients come as rules want them: nothing but a guard is left to do. */
  readonly isDone?: boolean;
}

/** One change to a rule, with its scalar. */
export interface ScaledRewrite {
  readonly rewrite: Rewrite;
  readonly by: number | Tensor;
}

/** What a step does to gradients before the rule sees them, in PyTorch's order; a guard keeps everything if the step is skipped. */
export function rewritesOf(
  options: Pick<GroupOptions & BaseOptions, "clip" | "maximize" | "decay">,
  penalty: Regularizer | null,
  { unscale, factor, skip, isDone }: Around = {},
): readonly ScaledRewrite[] {
  const guards: ScaledRewrite[] = skip ? [{ rewrite: "guard", by: skip }] : [];
  if (isDone) return guards;
  const { clip, maximize } = options;
  const rewrites: ScaledRewrite[] = [];
  if (unscale) rewrites.push({ rewrite: "scale", by: unscale });
  if (factor) rewrites.push({ rewrite: "scale", by: factor });
  if (clip?.value !== undefined) rewrites.push({ rewrite: "clamp", by: clip.value });
  if (maximize) rewrites.push({ rewrite: "scale", by: -1 });
  // After `maximize`: the penalty pulls towards zero in both directions.
  if (penalty) rewrites.push({ rewrite: penalty.kind, by: penalty.coefficient });
  const decay = addedDecay(options);
  if (decay !== 0) rewrites.push({ rewrite: "l2", by: decay });
  return [...rewrites, ...guards];
}

/** The rule that updates a parameter: that of its group, if an algorithm has no other for complex numbers. */
function ruleOf<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  { options, rule }: Pick<PlannedGroup<Options>, "options" | "rule">,
  { dtype }: Tensor,
): Rule {
  return (dtype === "c64" ? algorithm.complexRule?.(options) : undefined) ?? rule;
}

/** The rule after these changes. Their scalars come after its own. */
export function rewrittenBy(rule: Rule, rewrites: readonly ScaledRewrite[]): Rule {
  return rewritten(
    rule,
    rewrites.map(({ rewrite }) => rewrite),
  );
}

/** The scalars of a rule at these counters; NaN for those that stages compute. `constants` come first. @throws OptError BAD_ARGUMENT for one that the algorithm does not give */
export function scalarsOf<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options,
  rule: Rule,
  counters: Counters,
  before: Counters,
  constants: Readonly<Record<string, number>> = {},
): Scalar[] {
  const values = algorithm.scalars(options, counters, NUMBERS, before);
  const { scalars: names } = rule;
  const scalars = new Array<Scalar>(names.length);
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    const isOwn = algorithm.stageScalars?.includes(name) || STAGE_SCALARS.includes(name);
    const value = constants[name] ?? (isOwn ? Number.NaN : values[name]);
    if (typeof value !== "number") {
      const problem = `scalars() must give rule ${rule.name} the number ${name}, got ${value}.`;
      throw new OptError("BAD_ARGUMENT", algorithm.name, problem, "Name it there as the rule does.");
    }
    scalars[i] = value;
  }
  return scalars;
}

/** A group, as far as its plan depends on it. */
export interface PlannedGroup<Options> {
  readonly options: Options & GroupOptions;
  readonly rule: Rule;
  readonly keys: readonly string[];
}

/** The launches for parameters of a group: one for all that have device, dtype, formats, counter and penalty in common. */
export function plan<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  group: PlannedGroup<Options>,
  parameters: readonly PreparedParameter[],
  around: Around,
): PlannedLaunch<Options>[] {
  const lists: PreparedParameter[][] = [];
  let list: PreparedParameter[] | undefined;
  for (const each of parameters) {
    if (list === undefined || !stepTogether(list[0]!, each, group.keys)) {
      list = lists.find((known) => stepTogether(known[0]!, each, group.keys));
      if (list === undefined) {
        list = [];
        lists.push(list);
      }
    }
    list.push(each);
  }
  return lists.map((members) => new PlannedLaunch(algorithm, group, members, around));
}

function stepTogether(a: PreparedParameter, b: PreparedParameter, keys: readonly string[]): boolean {
  if (a.rows !== b.rows || a.isStochastic !== b.isStochastic) return false;
  const [one, other] = [a.slot, b.slot];
  if (one.param.device !== other.param.device || one.param.dtype !== other.param.dtype) return false;
  // Not by their values: a plan must stay what it is when two counters happen to be equal.
  if (one.state!.counter !== other.state!.counter || !isSamePenalty(a.penalty, b.penalty)) return false;
  for (const key of keys) {
    if (storedFormat(one.state!.tensors.get(key)!) !== storedFormat(other.state!.tensors.get(key)!)) return false;
  }
  return true;
}

function isSamePenalty(a: Regularizer | null, b: Regularizer | null): boolean {
  return a === b || (a !== null && b !== null && a.kind === b.kind && a.coefficient === b.coefficient);
}

/** One launch of a step. Its scalars are computed at each step from the options and counters of that time. */
export class PlannedLaunch<Options extends BaseOptions> implements ScalarSource {
  readonly slots: readonly Slot[];
  /** Those with master weights. */
  readonly masters: readonly Slot[];
  readonly device: Device;
  readonly kernel: Kernel<"rule">;
  readonly rewrites: readonly ScaledRewrite[];
  /** The same list in each step: devices cache what they make of it. */
  readonly tensors: readonly (readonly Slice[])[];
  /** The scalars of the next launch, and among them those of the rewrites. */
  scalars: readonly Scalar[] = [];
  extraScalars: readonly Scalar[] = [];
  readonly #first: PreparedParameter;
  readonly #written: readonly Tensor[] = [];
  readonly #storages: ReadonlySet<Storage>;
  #next: Counters | null = null;

  constructor(
    readonly algorithm: Algorithm<Options>,
    readonly group: PlannedGroup<Options>,
    members: readonly PreparedParameter[],
    private readonly around: Around,
  ) {
    const [first] = members as readonly [PreparedParameter, ...PreparedParameter[]];
    const { slot, penalty, isStochastic } = first;
    const { options, rule, keys } = group;
    this.#first = first;
    this.slots = members.map(({ slot }) => slot);
    this.masters = this.slots.filter(hasMaster);
    this.rewrites = rewritesOf(options, penalty, around);
    this.device = slot.param.device;
    const formats = formatsOf(rule, slot.param, slot.state!, isStochastic);
    const own = rewrittenBy(ruleOf(algorithm, group, slot.param), this.rewrites);
    this.kernel = this.device.kernel({ kind: "rule", rule: own, ...formats });
    const written: Tensor[] = [];
    this.tensors = members.map((member) => buffersOf(member, keys, written));
    this.#written = written;
    this.#storages = new Set(written.map(({ storage }) => storage));
  }

  get counter(): StepCounter {
    return this.#first.slot.state!.counter;
  }

  /** Puts the scalars of the rewrites in the dtype of the launch. */
  begin(): void {
    const { dtype } = this.kernel.spec;
    this.extraScalars = this.rewrites.map(({ by }) => (typeof by === "number" ? by : cast(by, dtype).memorySlice()));
  }

  next(): Scalar[] {
    const { algorithm, group, extraScalars } = this;
    const { options, rule } = group;
    const { counters } = this.counter;
    this.#next = advanced(algorithm, counters, options);
    const scalars = scalarsOf(algorithm, options, rule, this.#next, counters);
    for (let i = 0; i < extraScalars.length; i++) scalars.push(extraScalars[i]!);
    if (this.#first.isStochastic)
      scalars.push(...stochasticRounding.keys!(options.stochasticRounding, this.#next.step, this.device));
    return scalars;
  }

  commit(): void {
    if (!this.around.skipped?.()) this.counter.counters = this.#next!;
  }

  launch(scalarSource: ScalarSource): void {
    const { kernel, tensors, scalars } = this;
    (this.#first.rows ?? this.device).launch({ kind: "rule", kernel, tensors, scalars }, scalarSource, this.#written);
    this.launched();
  }

  /** Parameters and state were written. */
  launched(): void {
    for (const storage of this.#storages) storage.overwritten();
    for (const slot of this.masters) markInSync(slot);
  }
}

/**
 * Slices of a rule's buffers. Master weights come in the parameter's place, and the parameter, which mirrors them, comes last.
 *
 * @param written gets the tensors that the step overwrites
 */
function buffersOf(
  { slot, gradient, isStochastic }: PreparedParameter,
  keys: readonly string[],
  written: Tensor[],
): Slice[] {
  const { param, number, state } = slot;
  const { tensors } = state!;
  const master = tensors.get(MASTER);
  const slices = [(master ?? param).memorySlice(), gradient.memorySlice()];
  written.push(param);
  for (const key of keys) {
    const tensor = tensors.get(key)!;
    slices.push(tensor.packed?.slice() ?? tensor.memorySlice());
    written.push(tensor);
  }
  if (master !== undefined) {
    slices.push(param.memorySlice());
    written.push(master);
  }
  // Elements are numbered in the memory that views share, or in the whole, so that parts of a parameter draw as the whole does.
  if (isStochastic) {
    const before = param.placement ? elementsBefore(param.placement) : 0;
    slices[0] = { ...slices[0]!, place: number * 2 ** 32 + before + slices[0]!.byteOffset / 2 };
  }
  return slices;
}
