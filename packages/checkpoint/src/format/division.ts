/** How tensors that lie alike are divided: their boxes, and the file of each. As cuts they take few bytes, however many ranks there are. */
import { type Box, sameBox } from "../layout/box";
import { isCount } from "../layout/counts";
import { coordinatesOf } from "../layout/layout";
import { SourcePlan } from "../plan/plan";
import { listText } from "./json/plain";
import { isObject } from "./source";

/** Most boxes of all divisions together: a few bytes may claim any number. */
export const MOST_BOXES = 1 << 25;

/** Equal numbers in a row: how many there are, and by how much each is above the one before it. */
type Run = readonly [first: number, count: number, step: number];

export class Division {
  #boxes: readonly Box[] | undefined;
  #byFile: Map<number, number[]> | undefined;
  #plan: SourcePlan | undefined;

  /** `make` gives the boxes, ascending by place; `files` the file of each. */
  constructor(
    private readonly make: () => readonly Box[],
    readonly files: readonly number[],
  ) {}

  get boxes(): readonly Box[] {
    this.#boxes ??= this.make();
    return this.#boxes;
  }

  /** The boxes of a file, ascending. */
  inFile(file: number): readonly number[] {
    this.#byFile ??= indicesByValue(this.files);
    return this.#byFile.get(file) ?? [];
  }

  /** The boxes that together fill `target`. @throws OptError CORRUPT for boxes that overlap, MISSING for a gap */
  sourcesOf(target: Box, tensor: { readonly name: string; readonly shape: readonly number[] }): number[] {
    this.#plan ??= new SourcePlan(tensor, this.boxes);
    return this.#plan.sourcesOf(target);
  }

  /** As a manifest says it: the lengths along each dimension where the boxes are a grid, else their list. */
  text(): string {
    const sizes = gridOf(this.boxes);
    const boxes = sizes
      ? `"sizes":[${sizes.map(runsText)}]`
      : `"boxes":[${this.boxes.map(({ offset, size }) => `[${listText(offset)},${listText(size)}]`)}]`;
    return `{${boxes},"files":${runsText(this.files)}}`;
  }
}

/** Where each value is in a list. */
export function indicesByValue(values: readonly number[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (let i = 0; i < values.length; i++) {
    const known = found.get(values[i]!);
    if (known) known.push(i);
    else found.set(values[i]!, [i]);
  }
  return found;
}

/** The division that a manifest says. `fail` throws. */
export function parseDivision(raw: unknown, files: number, fail: (problem: string) => never): Division {
  if (!isObject(raw)) return fail("a division must be an object.");
  const { sizes, boxes } = raw;
  const owners = numbersOf(raw.files, fail);
  if (owners.some((file) => file >= files)) fail("a division names a file that is not there.");
  if (Array.isArray(sizes)) {
    const lengths = sizes.map((runs) => numbersOf(runs, fail));
    const count = lengths.reduce((product, { length }) => product * length, 1);
    if (count !== owners.length) fail(`a division has ${count} boxes and ${owners.length} files.`);
    return new Division(() => grid(lengths), owners);
  }
  if (!Array.isArray(boxes) || boxes.length !== owners.length) return fail("a division has neither sizes nor boxes.");
  const isCounts = (list: unknown) => Array.isArray(list) && list.every(isCount);
  if (!boxes.every((box) => Array.isArray(box) && box.length === 2 && box.every(isCounts)))
    fail("a box of a division has no offset or size.");
  const listed = (boxes as [number[], number[]][]).map(([offset, size]): Box => ({ offset, size }));
  return new Division(() => listed, owners);
}

/** The lengths along each dimension of boxes that are a grid in row-major order. */
function gridOf(boxes: readonly Box[]): number[][] | undefined {
  const rank = boxes[0]?.offset.length ?? 0;
  const lengths = Array.from({ length: rank }, (_, d) => {
    const known = new Map(boxes.map(({ offset, size }) => [offset[d]!, size[d]!]));
    return [...known].sort(([a], [b]) => a - b).map(([, size]) => size);
  });
  const count = lengths.reduce((product, { length }) => product * length, 1);
  if (count !== boxes.length) return undefined;
  return grid(lengths).every((box, i) => sameBox(box, boxes[i]!)) ? lengths : undefined;
}

function grid(lengths: readonly (readonly number[])[]): Box[] {
  const counts = lengths.map(({ length }) => length);
  const begins = lengths.map((sizes) => {
    let end = 0;
    return sizes.map((size) => {
      end += size;
      return end - size;
    });
  });
  const count = counts.reduce((product, length) => product * length, 1);
  return Array.from({ length: count }, (_, i) => {
    const parts = coordinatesOf(i, counts);
    return { offset: parts.map((part, d) => begins[d]![part]!), size: parts.map((part, d) => lengths[d]![part]!) };
  });
}

function runsText(numbers: readonly number[]): string {
  const runs: Run[] = [];
  for (let i = 0; i < numbers.length; ) {
    const first = numbers[i]!;
    const step = (numbers[i + 1] ?? first) - first;
    let count = 1;
    while (i + count < numbers.length && numbers[i + count] === first + count * step) count++;
    runs.push([first, count, step]);
    i += count;
  }
  return `[${runs.map(listText)}]`;
}

function numbersOf(runs: unknown, fail: (problem: string) => never): number[] {
  const numbers: number[] = [];
  if (!Array.isArray(runs)) return fail("a division must list runs of numbers.");
  for (const run of runs) {
    const [first, count, step] = Array.isArray(run) && run.length === 3 ? run : [];
    const last = first + (count - 1) * step;
    if (!isCount(first) || !isCount(count) || !Number.isSafeInteger(step) || count < 1 || !isCount(last))
      fail(`a run of numbers must be [first, count, step], got ${JSON.stringify(run)}.`);
    if (numbers.length + count > MOST_BOXES) fail(`a division may have ${MOST_BOXES} boxes.`);
    for (let i = 0; i < count; i++) numbers.push(first + i * step);
  }
  return numbers;
}
