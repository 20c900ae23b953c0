/** Index tensors as rows of a table: the axes that they are for come first, and are one. */

import { check } from "../../errors/errors";
import { readBytesSync } from "../../tensor/read";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { broadcastShapes, denseStrides, type Shape, showShape, sizeOf } from "../../values/shape";
import { elementwise } from "../elementwise/elementwise";
import { checkPositions } from "../indices/check-indices";
import { trueAt } from "../indices/masked";
import { places } from "../indices/positions";
import { lookAtInput } from "../look-at";
import { permute, reshape } from "../shape/shape";
import type { Pick } from "./parse-index";

/** How the axes of a region become rows, and where the axes of the picks are in the result. */
export interface Layout {
  readonly region: Shape;
  /** The axes that are picked from, then the others. */
  readonly order: readonly number[];
  readonly picked: Shape;
  readonly rest: Shape;
  /** How many of the other axes are before those of the picks. */
  readonly before: number;
}

/** As PyTorch: the picks' axes are where they were if these are neighbours, else first. Single positions have none. */
export function layoutOf(region: Shape, picks: readonly Pick[]): Layout {
  const axesOf = ({ axis, tensor }: Pick) => (tensor.dtype === "bool" ? tensor.shape.map((_, i) => axis + i) : [axis]);
  const all = picks.flatMap(axesOf);
  const others = region.map((_, axis) => axis).filter((axis) => !all.includes(axis));
  const wide = picks.filter(({ tensor }) => tensor.shape.length > 0).flatMap(axesOf);
  const [first = 0] = wide;
  const isTogether = !others.some((axis) => axis > first && axis < wide.at(-1)!);
  return {
    region,
    order: [...all, ...others],
    picked: all.map((axis) => region[axis]!),
    rest: others.map((axis) => region[axis]!),
    before: isTogether ? others.filter((axis) => axis < first).length : 0,
  };
}

/** The region as a table [rows, ...rest]. */
export function tableOf(x: Tensor, { order, picked, rest }: Layout): Tensor {
  const sorted = isInOrder(order) ? x : permute(x, order);
  return reshape(sorted, [sizeOf(picked), ...rest]);
}

/** The region of a table. */
export function regionOfTable(table: Tensor, { order, picked, rest, region }: Layout): Tensor {
  const sorted = reshape(table, [...picked, ...rest]);
  return isInOrder(order) ? reshape(sorted, region) : permute(sorted, inverse(order));
}

/** Chosen rows [...batch, ...rest] with the batch where the result has it. */
export function placedBatch(rows: Tensor, batch: number, { before }: Layout): Tensor {
  const order = batchOrder(rows.shape.length, batch, before);
  return isInOrder(order) ? rows : permute(rows, order);
}

/** Back from the result's order to rows [...batch, ...rest]. */
export function leadingBatch(values: Tensor, batch: number, { before }: Layout): Tensor {
  const order = inverse(batchOrder(values.shape.length, batch, before));
  return isInOrder(order) ? values : permute(values, order);
}

/** The shape of what is chosen. */
export function resultShape(batch: Shape, { rest, before }: Layout): Shape {
  return [...rest.slice(0, before), ...batch, ...rest.slice(before)];
}

function batchOrder(rank: number, batch: number, before: number): number[] {
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  return [...axes.slice(batch, batch + before), ...axes.slice(0, batch), ...axes.slice(batch + before)];
}

const isInOrder = (order: readonly number[]) => order.every((axis, i) => axis === i);
const inverse = (order: readonly number[]) => order.map((_, i) => order.indexOf(i));

/**
 * The row of each place that the picks choose, i32 [...batch]; -1 for positions out of range.
 *
 * @throws OptError BAD_ARGUMENT for a position out of range, where the device shares the host's memory; BAD_SHAPE unless they broadcast
 */
export function rowsOf(where: string, picks: readonly Pick[], { region }: Layout): Tensor {
  broadcastShapes(
    where,
    picks.map(({ tensor }) => tensor.shape),
  ); // before anything is allocated
  const extents = picks.map(({ axis }) => region[axis]!);
  const strides = denseStrides(extents);
  return noGrad(() => {
    let rows: Tensor | undefined;
    let isOutside: Tensor | undefined;
    for (const [i, { tensor }] of picks.entries()) {
      const extent = extents[i]!;
      checkPositions(where, tensor, extent);
      const wrapped = elementwise("select", [
        elementwise("less", [tensor, 0]),
        elementwise("add", [tensor, extent]),
        tensor,
      ]);
      const beyond = elementwise("add", [
        elementwise("less", [wrapped, 0]),
        elementwise("less", [extent - 1, wrapped]),
      ]);
      const step = elementwise("mul", [wrapped, strides[i]!]);
      rows = rows === undefined ? step : elementwise("add", [rows, step]);
      isOutside = isOutside === undefined ? beyond : elementwise("add", [isOutside, beyond]);
    }
    return elementwise("select", [isOutside!, -1, rows!]);
  });
}

/**
 * Masks as the positions where they are true, one tensor for each axis. The host has to know how many they are.
 *
 * @throws OptError NOT_SYNC where the device can't be read without waiting; UNSUPPORTED in a compiled function
 */
export function withoutMasks(where: string, picks: readonly Pick[]): Pick[] {
  return picks.flatMap((pick) => (pick.tensor.dtype === "bool" ? positionsOf(where, pick) : [pick]));
}

function positionsOf(where: string, { axis, tensor }: Pick): Pick[] {
  const { device, shape } = tensor;
  device.checkReadable();
  check(
    device.backend.readSync !== undefined,
    "NOT_SYNC",
    where,
    () => `how many elements a mask chooses is known only when ${device.name} has answered.`,
    "Use await maskedSelect(x, mask), or where(mask, a, b).",
  );
  const found = trueAt(readBytesSync(tensor));
  const strides = denseStrides(shape);
  return shape.map((extent, i) => ({
    axis: axis + i,
    tensor: places([found.length], device, (n) => Math.floor(found[n]! / strides[i]!) % extent),
  }));
}

/** Checks, where the device shares the host's memory, that a mask chooses as many elements as there are values. @throws OptError BAD_SHAPE */
export function checkCount(where: string, mask: Tensor, count: number): void {
  const { shape } = mask;
  lookAtInput(mask, (values) => {
    let found = 0;
    for (let i = 0; i < values.length; i++) found += values[i]! ? 1 : 0;
    check(
      found === count,
      "BAD_SHAPE",
      where,
      () => `needs a value for each of ${found} elements that the mask ${showShape(shape)} chooses, got ${count}.`,
      "One value broadcasts to all.",
    );
  });
}
