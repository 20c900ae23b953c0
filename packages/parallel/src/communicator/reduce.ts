/** Reductions whose bits do not depend on who computes: each rank receives every contribution to its part and adds them in rank order. */
import { check, keep, reduceInto, span, type Tensor } from "@opt/core";
import type { Reduction } from "../engine/engine";
import { Exchange, Turns } from "./exchange";
import { FlatTensors } from "./flat-tensors";
import { type Group, others } from "./group";
import { type Heading, headingOf } from "./heading";
import { type Part, partsOf, piecesOf, sharesOf, travelsWhole } from "./parts";
import { abandon, bytesOf, movedIn, receiveBuffer, roomLike } from "./staging";

const CONTRIBUTIONS = 0;
const RESULTS = 1;
/** Pieces that a rank waits for at once: what is being added stays in the processor's cache, and others are on their way. */
const AT_ONCE = 4;

const OPERATIONS = { sum: "add", mean: "add", min: "minimum", max: "maximum" } as const;

/** @throws OptError BAD_ARGUMENT, BAD_DTYPE */
export function checkReduction(where: string, x: Tensor, reduction: unknown): asserts reduction is Reduction {
  const known = ["sum", "mean", "min", "max"];
  const isKnown = typeof reduction === "string" && known.includes(reduction);
  check(
    isKnown,
    "BAD_ARGUMENT",
    where,
    () => `the reduction must be one of ${known.join(", ")}, got ${String(reduction)}.`,
  );
  check(x.dtype !== "bool", "BAD_DTYPE", where, () => "truth values are not added.", `Use .to("i32").`);
  const isFloat = x.dtype !== "i32" && x.dtype !== "u8";
  check(
    isFloat || reduction !== "mean",
    "BAD_DTYPE",
    where,
    () => `a mean needs a floating-point tensor, got ${x.dtype}.`,
    `Use "sum", or .to("f32").`,
  );
}

/**
 * x = the reduction over the ranks, in place: each rank sends n (W - 1) / W elements, twice.
 *
 * @param tensors of one dtype and device, which are flattened together
 * @param divisor of the sum
 */
export async function allReduce(
  group: Group,
  where: string,
  tensors: readonly Tensor[],
  reduction: Reduction,
  heading: Heading,
  divisor = divisorOf(group, reduction),
): Promise<void> {
  const operation = group.begin(where, heading);
  if (group.size === 1) return;
  const read = FlatTensors.of(tensors);
  // Without a wait where none is needed: what leaves in the middle of a backward leaves now.
  const flat = read instanceof FlatTensors ? read : await read;
  const exchange = new Exchange(operation);
  if (travelsWhole(flat.size, flat.width, group.size)) {
    await reduceWhole(group, exchange, flat, reduction, divisor);
    flat.done();
    return;
  }
  const pieces = sharesOf(flat.size, flat.width, group.size).map((part) => piecesOf(part, flat.width));
  for (const rank of others(group)) {
    const results = new Turns();
    for (const [number, piece] of pieces[rank]!.entries()) {
      const place = flat.at(piece);
      place.read();
      const receive = () =>
        exchange.move("receive", rank, RESULTS, place.bytes, () => {
          place.put();
          place.release();
        });
      // It comes to where the contribution lies. A shorter one may be over before a longer one that began earlier.
      exchange.move("send", rank, CONTRIBUTIONS, place.bytes, () => results.possible(number, receive));
    }
  }
  await reducePieces(group, exchange, flat, pieces[group.rank]!, reduction, divisor, inPlace, (piece, sum) => {
    const place = flat.at(piece);
    if (!areOne(place.bytes, sum)) place.bytes.set(sum);
    place.put();
    let unsent = group.size - 1;
    const left = () => {
      if (--unsent === 0) place.release();
    };
    for (const rank of others(group)) exchange.move("send", rank, RESULTS, place.bytes, left);
  });
  flat.done();
}

/** A mean is the sum, divided once. */
const divisorOf = ({ size }: Group, reduction: Reduction) => (reduction === "mean" ? size : 1);

const inPlace = (_: Part, own: Tensor) => own;

/** Each rank adds all of it. */
async function reduceWhole(
  group: Group,
  exchange: Exchange,
  flat: FlatTensors,
  reduction: Reduction,
  divisor: number,
): Promise<void> {
  const pieces = flat.size === 0 ? [] : [{ begin: 0, end: flat.size }];
  for (const piece of pieces) {
    const place = flat.at(piece);
    place.read();
    const copy = place.bytes.slice(); // the sum comes to where it was, perhaps before it has left
    place.release();
    for (const rank of others(group)) exchange.move("send", rank, CONTRIBUTIONS, copy);
  }
  await reducePieces(group, exchange, flat, pieces, reduction, divisor, inPlace, (piece, sum) => {
    const place = flat.at(piece);
    if (!areOne(place.bytes, sum)) place.bytes.set(sum);
    place.put();
    place.release();
  });
}

/** As `allReduce`, by the engine's own where it has one: what order it adds in is its own affair. */
export async function allReduceByEngine(
  group: Group,
  where: string,
  tensors: readonly Tensor[],
  reduction: Reduction,
  heading: Heading,
  divisor = divisorOf(group, reduction),
): Promise<void> {
  const [{ dtype }] = tensors as [Tensor];
  const engines = group.size === 1 ? undefined : group.world.engine.allReduceOf?.(group.members, dtype);
  const size = tensors.reduce((sum, x) => sum + x.size, 0);
  if (engines === undefined || size === 0) return allReduce(group, where, tensors, reduction, heading, divisor);
  const operation = group.begin(where, heading);
  const flat = await FlatTensors.of(tensors);
  const place = flat.at({ begin: 0, end: size });
  place.read();
  const sum = engines(operation.tag, place.bytes, reduction === "mean" ? "sum" : reduction);
  await movedIn(tensors, operation.all([operation.together(sum)]));
  place.put();
  flat.done();
  if (divisor !== 1) for (const x of tensors) reduceInto(x, [x], "add", divisor);
}

/** A rank's rows of the reduction: its part along axis 0. */
export async function reduceScatter(group: Group, where: string, x: Tensor, reduction: Reduction): Promise<Tensor> {
  const [rows, ...row] = x.shape as [number, ...number[]];
  const length = row.reduce((a, b) => a * b, 1);
  const operation = group.begin(where, headingOf(`${where} "${reduction}"`, x));
  const whole = await FlatTensors.of([x]);
  const parts = partsOf(rows, group.size).map(({ begin, end }) => ({ begin: begin * length, end: end * length }));
  const pieces = parts.map((part) => piecesOf(part, whole.width));
  const { begin } = parts[group.rank]!;
  const own = partsOf(rows, group.size)[group.rank]!;
  const result = roomLike(x, [own.end - own.begin, ...row]);
  const exchange = new Exchange(operation);
  for (const rank of others(group))
    for (const piece of pieces[rank]!) {
      const place = whole.at(piece); // of one tensor: no copy
      exchange.move("send", rank, CONTRIBUTIONS, place.bytes);
    }
  const inResult = (piece: Part) => keep(span(result, piece.begin - begin, piece.end - begin));
  await reducePieces(
    group,
    exchange,
    whole,
    pieces[group.rank]!,
    reduction,
    divisorOf(group, reduction),
    inResult,
    () => {},
  );
  return result;
}

/**
 * Adds what all ranks contribute to these pieces, in the order of the ranks and on the device of the tensors. Resolves when all of the exchange
 * has ended.
 *
 * @param target where the sum comes to: perhaps this rank's own contribution. It is disposed
 * @param take is given the sum
 */
async function reducePieces(
  group: Group,
  exchange: Exchange,
  flat: FlatTensors,
  pieces: readonly Part[],
  reduction: Reduction,
  divisor: number,
  target: (piece: Part, own: Tensor) => Tensor,
  take: (piece: Part, sum: Uint8Array) => void,
): Promise<void> {
  /** Where contributions come to, until they are added. */
  const rooms = new Set<Tensor>();
  const sums = new Turns();
  let begun = 0;
  const next = () => {
    const number = begun++;
    const piece = pieces[number];
    if (piece === undefined) return;
    const contributions = Array.from({ length: group.size }, (_, rank) => {
      if (rank === group.rank) return flat.tensor(piece);
      const room = roomLike(flat.tensors[0]!, [piece.end - piece.begin]);
      rooms.add(room);
      return room;
    });
    let missing = group.size - 1;
    const arrived = () => {
      if (--missing > 0) return;
      const sum = target(piece, contributions[group.rank]!);
      reduceInto(sum, contributions, OPERATIONS[reduction], divisor);
      for (const contribution of contributions) {
        rooms.delete(contribution);
        if (contribution !== sum) contribution.dispose();
      }
      exchange.read(bytesOf(sum), (bytes) =>
        sums.possible(number, () => {
          take(piece, bytes);
          sum.dispose();
          next();
        }),
      );
    };
    if (missing === 0) arrived();
    for (const rank of others(group)) {
      const { bytes, done } = receiveBuffer(contributions[rank]!);
      exchange.move("receive", rank, CONTRIBUTIONS, bytes, () => {
        done();
        arrived();
      });
    }
  };
  for (let i = 0; i < AT_ONCE; i++) next();
  try {
    await exchange.begun();
  } catch (error) {
    abandon([...rooms, ...flat.tensors]);
    throw error;
  }
}

const areOne = (a: Uint8Array, b: Uint8Array) => a.buffer === b.buffer && a.byteOffset === b.byteOffset;
