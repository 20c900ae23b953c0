/** What JavaScript lets through: every call is tried with arguments of the wrong kind, and may answer with an OptError alone. */
import { type Device, OptError, type Shape, Tensor, tidy, zeros } from "@opt/core";

class Stranger {
  readonly shape = 5;
}

const circle: unknown[] = [];
circle.push(circle);

/** New ones each time: a call may change what it is given. */
const WRONG: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => "text",
  () => true,
  () => Number.NaN,
  () => -1,
  () => 0.5,
  () => Number.POSITIVE_INFINITY,
  () => 2 ** 40,
  () => 1n,
  () => Symbol("wrong"),
  () => [],
  () => [2 ** 40],
  () => [[1, 2]],
  () => [1n, 2n],
  () => ["text", null],
  () => [undefined],
  () => circle,
  () => ({}),
  () => ({ dim: 0 }),
  () => ({ unknown_option: 1, dtype: 5 }),
  () => Object.create(null),
  () => new Map([["a", 1]]),
  () => new Stranger(),
  () => BigInt64Array.of(1n),
  () => new DataView(new ArrayBuffer(8)),
  () => () => 1,
  () => async () => 1,
];

/**
 * Calls with each wrong value in each place of the valid arguments, in one place more, in all places, and without any.
 *
 * @param codes gets the code of each call's error, in order, and "" of calls that end well
 * @param inOptions puts each wrong value in each option of the valid arguments, too
 * @returns what was thrown that is no OptError
 */
export async function rawErrors(
  where: string,
  call: (...args: never[]) => unknown,
  valid: () => readonly unknown[],
  codes: string[] = [],
  inOptions = false,
): Promise<string[]> {
  const raw: string[] = [];
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0; // thousands are thrown, and nobody reads their stacks
  const attempt = async (args: readonly unknown[], what: string) => {
    try {
      await call(...(args as never[]));
      codes.push("");
    } catch (error) {
      if (!(error instanceof OptError)) raw.push(`${where} with ${what}: ${String(error)}`);
      codes.push(error instanceof OptError ? error.code || "no code" : String(error));
    }
  };
  const places = valid().length;
  await attempt([], "nothing");
  for (const [i, wrong] of WRONG.entries()) {
    for (let place = 0; place <= places; place++) {
      const args = [...valid()];
      args[place] = wrong();
      await attempt(args, `wrong value ${i} as argument ${place}`);
    }
    await attempt(valid().map(wrong), `wrong value ${i} everywhere`);
    for (const [place, key] of inOptions ? optionsOf(valid()) : []) {
      const args = valid().map((value, at) => (at === place ? { ...(value as object), [key]: wrong() } : value));
      await attempt(args, `wrong value ${i} as ${key} of argument ${place}`);
    }
  }
  Error.stackTraceLimit = stackTraceLimit;
  return raw;
}

/** Each option among the arguments, by the place of its object and its name. */
const optionsOf = (args: readonly unknown[]): (readonly [number, string])[] =>
  args.flatMap((value, place) => (isPlain(value) ? Object.keys(value).map((key) => [place, key] as const) : []));

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/**
 * Calls with each option of the valid arguments as undefined, and without any.
 *
 * @returns what both give, as text; null where the call needs its options
 */
export function withUndefined(
  call: (...args: never[]) => unknown,
  valid: () => readonly unknown[],
): [string, string] | null {
  if (!valid().some(isPlain)) return null;
  const outcome = (change: (options: object) => object) => {
    const result = call(...(valid().map((value) => (isPlain(value) ? change(value) : value)) as never[]));
    return tensorsIn([result])
      .map((x) => `${x.dtype} [${x.shape}] ${x.dataSync()}`)
      .join("; ");
  };
  try {
    const left = outcome(() => ({}));
    return [outcome((options) => Object.fromEntries(Object.keys(options).map((name) => [name, undefined]))), left];
  } catch (error) {
    if (error instanceof OptError) return null;
    throw error;
  }
}

const SPOILED = Symbol("spoiled");

/** Puts what no call takes into lists and options, also into those inside: what was made of them must not read them again. */
export function spoil(given: unknown): void {
  if (!Array.isArray(given) && !isPlain(given)) return;
  const all = given as Record<string, unknown>;
  for (const key of Object.keys(all)) {
    spoil(all[key]);
    all[key] = SPOILED;
  }
}

const ALMOST_ZERO = 1e-30;

/**
 * Calls with 0 and with almost 0 in the place of each number among the valid arguments and their options.
 *
 * @returns where both compute, and differ: where 0 counts as left out
 */
export function jumpsAtZero(call: (...args: never[]) => unknown, valid: () => readonly unknown[]): string[] {
  const isNumber = (value: unknown) => typeof value === "number";
  const places = valid().flatMap((value, place) => [
    ...(isNumber(value) ? [[place, ""] as const] : []),
    ...optionsOf([value]).flatMap(([, key]) =>
      isNumber((value as Record<string, unknown>)[key]) ? [[place, key] as const] : [],
    ),
  ]);
  const outcome = (place: number, key: string, number: number) => {
    const args = valid().map((value, i) => {
      if (i !== place) return value;
      return key === "" ? number : { ...(value as object), [key]: number };
    });
    try {
      return tensorsIn([call(...(args as never[]))]).flatMap((x) => [...x.dataSync()]);
    } catch (error) {
      if (error instanceof OptError) return null;
      throw error;
    }
  };
  const isNear = (a: number, b: number) => Object.is(a, b) || Math.abs(a - b) <= 1e-5 + 1e-5 * Math.abs(a);
  return places.flatMap(([place, key]) => {
    const [zero, almost] = [0, ALMOST_ZERO].map((number) => outcome(place, key, number));
    const isSame = !zero || !almost || (zero.length === almost.length && zero.every((a, i) => isNear(a, almost[i]!)));
    return isSame ? [] : [`${key} of argument ${place}`];
  });
}

/** A tensor of another rank or extent than a call is meant for: zeros, which also are valid indices. */
const RANKS: Readonly<Record<string, (shape: Shape) => Shape | undefined>> = {
  "no axes": (shape) => (shape.length === 0 ? undefined : []),
  "an axis less": (shape) => (shape.length === 0 ? undefined : shape.slice(1)),
  "an axis more in front": (shape) => [2, ...shape],
  "an axis more behind": (shape) => [...shape, 2],
  "an axis of 1 more behind": (shape) => [...shape, 1],
  "longer rows": (shape) => (shape.length === 0 ? undefined : shape.with(-1, shape.at(-1)! + 1)),
  "more rows": (shape) => (shape.length === 0 ? undefined : shape.with(0, shape[0]! + 1)),
  "axes turned round": (shape) => (shape[0] === shape.at(-1) ? undefined : shape.toReversed()),
  "no rows": (shape) => (shape.length === 0 ? undefined : shape.with(0, 0)),
  "no columns": (shape) => (shape.length === 0 ? undefined : shape.with(-1, 0)),
};

/**
 * Calls with each tensor among the valid arguments, and each two of them, in other ranks and extents. What is computed has whole extents,
 * backward too, and what throws has allocated nothing.
 *
 * @param device where the tensors are; by default where they were made
 * @param codes gets the code of each call's error, in order, and "" of calls that end well
 * @param alike changes two tensors in the same way alone, which is what most calls compute
 * @returns what was thrown that is no OptError, and what was left behind
 */
export function rankErrors(
  call: (...args: never[]) => unknown,
  given: () => readonly unknown[],
  {
    device,
    codes = [],
    alike = false,
  }: { readonly device?: Device; readonly codes?: string[]; readonly alike?: boolean } = {},
): string[] {
  const moved = (x: Tensor) => (device === undefined || x.device === device ? x : x.detach().to(device));
  const valid = () => mapTensors(given(), moved) as unknown[];
  const problems: string[] = [];
  const count = tensorsIn(valid()).length;
  const changes = Object.entries(RANKS);
  for (let first = 0; first < count; first++) {
    for (const [name, change] of changes) {
      attemptRanks(call, valid, new Map([[first, change]]), `${name} of tensor ${first}`, problems, codes);
      for (let second = first + 1; second < count; second++)
        for (const [other, changeOther] of alike ? changes.filter(([each]) => each === name) : changes)
          attemptRanks(
            call,
            valid,
            new Map([
              [first, change],
              [second, changeOther],
            ]),
            `${name} of tensor ${first}, ${other} of tensor ${second}`,
            problems,
            codes,
          );
    }
  }
  return problems;
}

function attemptRanks(
  call: (...args: never[]) => unknown,
  valid: () => readonly unknown[],
  changes: ReadonlyMap<number, (shape: Shape) => Shape | undefined>,
  what: string,
  problems: string[],
  codes: string[],
): void {
  tidy(() => {
    let number = 0;
    const args = mapTensors(valid(), (tensor) => {
      const shape = changes.get(number++)?.(tensor.shape);
      if (shape === undefined) return tensor;
      const { dtype, device } = tensor;
      const isFloat = dtype === "f32" || dtype === "f64";
      return zeros(shape, { dtype, device, requiresGrad: isFloat });
    }) as never[];
    const device = tensorsIn(args)[0]!.device;
    const before = device.memory().bytes;
    let results: readonly Tensor[] = [];
    try {
      results = tensorsIn([call(...args)]);
      codes.push("");
    } catch (error) {
      codes.push(error instanceof OptError ? error.code || "no code" : String(error));
      const left = device.memory().bytes - before;
      if (!(error instanceof OptError)) problems.push(`${what}: ${String(error)}`);
      else if (left !== 0) problems.push(`${what}: ${left} bytes left behind by ${String(error)}`);
    }
    for (const { shape, size } of results)
      if (!Number.isSafeInteger(size) || !shape.every(Number.isSafeInteger)) problems.push(`${what}: shape [${shape}]`);
    try {
      for (const result of results)
        if (result.requiresGrad && result.dtype !== "c64") result.sum().backward(undefined, { retainGraph: true });
    } catch (error) {
      if (!(error instanceof OptError)) problems.push(`${what}, backward: ${String(error)}`); // no inverse of zeros, for example
    }
    for (const { grad, shape } of tensorsIn(args))
      if (grad !== null && String(grad.shape) !== String(shape)) problems.push(`${what}: gradient [${grad.shape}]`);
    if (!Number.isFinite(device.memory().bytes)) throw new Error(`${what}: bytes are no number`);
  });
}

function tensorsIn(value: unknown): Tensor[] {
  const found: Tensor[] = [];
  mapTensors(value, (tensor) => {
    found.push(tensor);
    return tensor;
  });
  return found;
}

function mapTensors(value: unknown, replace: (tensor: Tensor) => Tensor): unknown {
  if (value instanceof Tensor) return replace(value);
  if (Array.isArray(value)) return value.map((item) => mapTensors(item, replace));
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTensors(item, replace)]));
}
