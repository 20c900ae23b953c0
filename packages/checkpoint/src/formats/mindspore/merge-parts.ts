/** The parts that MindSpore's ranks hold of a tensor, as one tensor: by a layout where there is one, as replicas that must be equal where not. */

import { check } from "@opt/core";
import type { SourceBox, SourceTensor } from "../../format/source";
import { type Layout, matchesPattern, ranksOf } from "../../layout/layout";
import { boxesOfRank, wholeShape } from "../../layout/placements";
import { badState, missing } from "../bytes/errors";
import { comparedBox } from "../bytes/replicas";
import { type MindsporeLayout, mindsporePart } from "./strategy";

/** What one rank's file holds under a name. */
export interface HeldPart {
  readonly rank: number;
  readonly tensor: SourceTensor;
}

export interface MergeContext {
  readonly path: string;
  readonly ranks: number;
  readonly strategy: ReadonlyMap<string, MindsporeLayout>;
  readonly sourceLayout?: Layout;
  readonly names: { has(name: string): boolean };
}

interface PlacedPart extends HeldPart {
  readonly offset: readonly number[];
}

/** @throws OptError BAD_STATE if parts do not fit each other, MISSING if ranks are missing; a read throws BAD_STATE if replicas differ */
export function mergeParts(name: string, held: readonly HeldPart[], context: MergeContext): SourceTensor {
  const { dtype } = held[0]!.tensor;
  const follows = parameterOf(name, context);
  const given = context.sourceLayout === undefined ? undefined : matching(context.sourceLayout, name, follows);
  const layout = context.strategy.get(name) ?? (follows === undefined ? undefined : context.strategy.get(follows));
  const first = held[0]!;
  const { shape, placed } =
    given !== undefined
      ? byLayout(name, follows, held, given, context)
      : layout !== undefined
        ? byStrategy(name, held, layout, context)
        : asReplicas(held);
  const named = given !== undefined || layout !== undefined;
  const odd = held.find(({ tensor }) => tensor.dtype !== dtype || !(named || `${tensor.shape}` === `${shape}`));
  if (odd !== undefined) {
    const [theirs, ours] = [odd.tensor, first.tensor];
    const problem = `rank ${odd.rank} holds ${name} as ${theirs.dtype} [${theirs.shape}], rank ${first.rank} as ${dtype} [${ours.shape}]`;
    const advice = "The files are of different runs, or this tensor needs a source layout (--source-layout).";
    throw badState(context.path, problem, advice);
  }
  const places = new Map<string, PlacedPart[]>();
  for (const part of placed) places.set(`${part.offset}`, [...(places.get(`${part.offset}`) ?? []), part]);
  const boxes = [...places.values()].map((replicas) => replicated(name, replicas, context.path));
  return { name, dtype, shape, boxes };
}

/** A state follows its parameter where nothing names it itself: `moments.fc.weight` is split as `fc.weight` is. */
function parameterOf(name: string, { names }: MergeContext): string | undefined {
  const rest = name.slice(name.indexOf(".") + 1);
  return rest !== name && names.has(rest) ? rest : undefined;
}

function matching(layout: Layout, name: string, follows: string | undefined): Layout | undefined {
  const meant = Object.keys(layout.tensors).some(
    (pattern) => matchesPattern(pattern, name) || (follows !== undefined && matchesPattern(pattern, follows)),
  );
  return meant ? layout : undefined;
}

function asReplicas(held: readonly HeldPart[]): { shape: readonly number[]; placed: PlacedPart[] } {
  const placed = held.map((part) => ({ ...part, offset: part.tensor.shape.map(() => 0) }));
  return { shape: held[0]!.tensor.shape, placed };
}

function byLayout(
  name: string,
  follows: string | undefined,
  held: readonly HeldPart[],
  layout: Layout,
  { ranks, path }: MergeContext,
): { shape: readonly number[]; placed: PlacedPart[] } {
  const problem = () => `its mesh has ${ranksOf(layout)} ranks, ${path} has ${ranks}.`;
  const advice = "Describe the run that wrote the files.";
  check(ranksOf(layout) === ranks, "BAD_ARGUMENT", "sourceLayout", problem, advice);
  const parts = new Map(held.map(({ rank, tensor }) => [rank, tensor.shape]));
  const rank = held[0]!.tensor.shape.length;
  const one = { name, ...(follows === undefined ? {} : { follows }) };
  const shape = wholeShape(layout, { ...one, rank }, (r) => parts.get(r));
  const placed = held.map((part): PlacedPart => {
    const [box, ...more] = boxesOfRank(layout, { ...one, shape }, part.rank);
    const fits = box !== undefined && more.length === 0 && `${box.size}` === `${part.tensor.shape}`;
    check(
      fits,
      "BAD_SHAPE",
      `tensor ${JSON.stringify(name)}`,
      () => `rank ${part.rank} holds [${part.tensor.shape}], the source layout says [${box?.size}].`,
      'Check the layout; uneven parts need { split, sizes } or another rule ("ceil").',
    );
    return { ...part, offset: box.offset };
  });
  return { shape, placed };
}

/** A stage of a pipeline has the devices of its layout: the run's ranks are cut into stages of so many. */
function byStrategy(name: string, held: readonly HeldPart[], layout: MindsporeLayout, { ranks, path }: MergeContext) {
  const devices = layout.deviceMatrix.reduce((product, size) => product * size, 1);
  if (ranks % devices !== 0) {
    const problem = `${JSON.stringify(name)} was split over ${devices} devices, got the files of ${ranks} ranks`;
    throw missing(path, problem, "Bring the folders of all ranks together.");
  }
  const [first] = held;
  const local = first!.tensor.shape;
  // All ranks have as many parts.
  const whole = mindsporePart(layout, 0, local.length).parts.map((parts, d) => parts * local[d]!);
  const placed = held.map((part): PlacedPart => {
    const { shape } = part.tensor;
    const { parts, index } = mindsporePart(layout, part.rank % devices, shape.length);
    if (`${shape.map((length, d) => length * parts[d]!)}` !== `${whole}`) {
      const problem = `rank ${part.rank} holds a part [${shape}] of ${name}, rank ${first!.rank} one of [${local}]`;
      throw badState(path, problem, "The files are of different runs, or the strategy is another run's.");
    }
    return { ...part, offset: shape.map((length, d) => length * index[d]!) };
  });
  return { shape: whole, placed };
}

/** The first rank's box, which is compared with every other rank's as it is read. */
function replicated(name: string, [first, ...others]: readonly PlacedPart[], path: string): SourceBox {
  const own = first!.tensor.boxes[0]!;
  const { size, byteLength, file } = own;
  const read = (target: Uint8Array, start: number) => own.read(target, start);
  const placed = { offset: first!.offset, size, byteLength, file, read };
  const theirs = others.map(({ tensor }) => tensor.boxes[0]!);
  return comparedBox(placed, theirs, (other) => {
    const ranks = `${first!.rank} and ${others[other]!.rank}`;
    const problem = `ranks ${ranks} hold ${JSON.stringify(name)} with different bytes, and nothing says that it is split between them`;
    return badState(path, problem, "Give a source layout (--source-layout) that says how it is split.");
  });
}
