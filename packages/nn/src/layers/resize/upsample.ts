/** `interpolate` and rearrangements as layers. */
import { check, checkTensor, show, type Tensor, tidy } from "@opt/core";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { checkInterpolation, type InterpolateOptions, interpolate } from "./interpolate";

/**
 * `interpolate` as a layer: of sequences, images or volumes.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE
 * @example
 * const larger = new Upsample({ scaleFactor: 2, mode: "bilinear" }).forward(rand([1, 3, 8, 8])); // [1, 3, 16, 16]
 */
export class Upsample extends Module {
  readonly options: InterpolateOptions;

  constructor(options: InterpolateOptions) {
    super();
    checkInterpolation("Upsample", options);
    this.options = structuredClone(options);
  }

  forward(x: Tensor): Tensor {
    return interpolate(x, this.options);
  }

  override describe(): string {
    return Object.entries(this.options)
      .map(([name, value]) => `${name}=${[value].flat().join("x")}`)
      .join(", ");
  }
}

/**
 * Channels become pixels: [..., channels r^2, height, width] to [..., channels, height r, width r] (Shi et al. 2016).
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE
 * @example
 * const larger = new PixelShuffle(2).forward(rand([1, 12, 4, 4])); // [1, 3, 8, 8]
 */
export class PixelShuffle extends Module {
  readonly upscaleFactor: number;

  constructor(upscaleFactor: number) {
    super();
    checkExtents("PixelShuffle", { upscaleFactor });
    this.upscaleFactor = upscaleFactor;
  }

  forward(x: Tensor): Tensor {
    checkTensor("PixelShuffle", x);
    const r = this.upscaleFactor;
    const [channels = 0, height = 0, width = 0] = x.shape.slice(-3);
    check(
      x.shape.length >= 3 && channels % (r * r) === 0,
      "BAD_SHAPE",
      "PixelShuffle",
      () => `needs [..., channels, height, width] with channels divisible by ${r * r}, got [${x.shape}].`,
      "Check the channels of the layer before.",
    );
    const before = x.shape.slice(0, -3);
    const n = before.length;
    return tidy(() => {
      const parts = x.reshape([...before, channels / (r * r), r, r, height, width]);
      const order = [...before.keys(), n, n + 3, n + 1, n + 4, n + 2];
      return parts.permute(order).reshape([...before, channels / (r * r), height * r, width * r]);
    });
  }

  override describe(): string {
    return `upscaleFactor=${this.upscaleFactor}`;
  }
}

/**
 * Pixels become channels, the opposite of `PixelShuffle`: [..., channels, height r, width r] to [..., channels r^2, height, width].
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE
 * @example
 * const smaller = new PixelUnshuffle(2).forward(rand([1, 3, 8, 8])); // [1, 12, 4, 4]
 */
export class PixelUnshuffle extends Module {
  readonly downscaleFactor: number;

  constructor(downscaleFactor: number) {
    super();
    checkExtents("PixelUnshuffle", { downscaleFactor });
    this.downscaleFactor = downscaleFactor;
  }

  forward(x: Tensor): Tensor {
    checkTensor("PixelUnshuffle", x);
    const r = this.downscaleFactor;
    const [channels = 0, height = 0, width = 0] = x.shape.slice(-3);
    check(
      x.shape.length >= 3 && height % r === 0 && width % r === 0,
      "BAD_SHAPE",
      "PixelUnshuffle",
      () => `needs [..., channels, height, width] with extents divisible by ${r}, got [${x.shape}].`,
      "Pad or crop the images.",
    );
    const before = x.shape.slice(0, -3);
    const n = before.length;
    return tidy(() => {
      const parts = x.reshape([...before, channels, height / r, r, width / r, r]);
      const order = [...before.keys(), n, n + 2, n + 4, n + 1, n + 3];
      return parts.permute(order).reshape([...before, channels * r * r, height / r, width / r]);
    });
  }

  override describe(): string {
    return `downscaleFactor=${this.downscaleFactor}`;
  }
}

/**
 * One axis as several: a view. One size may be -1.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE
 * @example
 * const images = new Unflatten(1, [3, 4, 4]).forward(rand([2, 48])); // [2, 3, 4, 4]
 */
export class Unflatten extends Module {
  readonly axis: number;
  readonly sizes: readonly number[];

  constructor(axis: number, sizes: readonly number[]) {
    super();
    const isAxis = Number.isInteger(axis);
    check(isAxis, "BAD_ARGUMENT", "Unflatten", () => `axis must be an integer, got ${show(axis)}.`, "For example 1.");
    const isList = Array.isArray(sizes) && sizes.length > 0 && sizes.every(Number.isInteger);
    check(
      isList,
      "BAD_ARGUMENT",
      "Unflatten",
      () => `sizes must be a list of integers, got ${show(sizes)}.`,
      "For example [3, 4, 4].",
    );
    this.axis = axis;
    this.sizes = [...sizes];
  }

  forward(x: Tensor): Tensor {
    checkTensor("Unflatten", x);
    const { length } = x.shape;
    const at = this.axis < 0 ? this.axis + length : this.axis;
    const isThere = at >= 0 && at < length;
    check(
      isThere,
      "BAD_SHAPE",
      "Unflatten",
      () => `axis ${this.axis} must be one of [${x.shape}].`,
      "Check the input.",
    );
    const extent = x.shape[at]!;
    const known = Math.abs(this.sizes.reduce((a, b) => a * b, 1));
    const fits = this.sizes.includes(-1) ? extent % known === 0 : extent === known;
    check(fits, "BAD_SHAPE", "Unflatten", () => `[${this.sizes}] must hold ${extent} elements.`, "Check the sizes.");
    const sizes = this.sizes.map((size) => (size === -1 ? extent / known : size));
    return x.reshape(x.shape.toSpliced(at, 1, ...sizes));
  }

  override describe(): string {
    return `axis=${this.axis}, sizes=[${this.sizes}]`;
  }
}
