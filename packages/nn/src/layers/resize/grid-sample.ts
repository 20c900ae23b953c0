/** Images and volumes read at places of one's own, between their pixels too. */
import {
  arange,
  check,
  checkOptions,
  checkTensor,
  where as choose,
  floor,
  gather,
  logicalAnd,
  noGrad,
  round,
  type Shape,
  show,
  type Tensor,
  tensor,
  tidy,
  zerosLike,
} from "@opt/core";

export interface GridSampleOptions {
  /** Weights by distance, or the nearest pixel. Of volumes "bilinear" is trilinear. Default "bilinear". */
  readonly mode?: "bilinear" | "nearest";
  /** What is outside: zeros, the pixels of the border, or a mirror. Default "zeros". */
  readonly paddingMode?: "zeros" | "border" | "reflection";
  /** -1 and 1 are the middles of the pixels in the corners, in place of their outer edges. Default false. */
  readonly alignCorners?: boolean;
}

const OPTIONS = { mode: "string", paddingMode: "string", alignCorners: "boolean" } as const;

/**
 * Reads images [batch, channels, height, width] at the places of a grid [batch, outHeight, outWidth, 2], or volumes
 * [batch, channels, depth, height, width] at those of a grid [batch, outDepth, outHeight, outWidth, 3] (Jaderberg et al. 2015). A place is
 * (x, y) or (x, y, z), each from -1 to 1. Gradients flow to the images and to the grid.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, BAD_DTYPE, DEVICE_MISMATCH
 * @example
 * const theta = tensor([[[0, -1, 0], [1, 0, 0]]]);
 * const turned = gridSample(rand([1, 3, 8, 8]), affineGrid(theta, [1, 3, 8, 8])); // by a quarter
 */
export function gridSample(x: Tensor, grid: Tensor, options: GridSampleOptions = {}): Tensor {
  const where = "gridSample";
  checkTensor(where, x);
  checkTensor(where, grid, "grid");
  checkOptions(where, options, OPTIONS);
  const { mode = "bilinear", paddingMode = "zeros", alignCorners = false } = options;
  checkChoice(where, "mode", mode, ["bilinear", "nearest"]);
  checkChoice(where, "paddingMode", paddingMode, ["zeros", "border", "reflection"]);
  const [batch, channels, ...extents] = x.shape as [number, number, ...number[]];
  const axes = extents.length;
  const isGrid = grid.shape.length === axes + 2 && grid.shape[0] === batch && grid.shape.at(-1) === axes;
  check(
    (axes === 2 || axes === 3) && isGrid && !x.shape.slice(1).includes(0),
    "BAD_SHAPE",
    where,
    () =>
      `needs images and a grid [batch, ..., 2], or volumes and [batch, ..., 3], got [${x.shape}] and [${grid.shape}].`,
    "Both have the same batch.",
  );
  const isFloat = ["f32", "f64", "f16", "bf16"].includes(x.dtype) && x.dtype === grid.dtype;
  check(isFloat, "BAD_DTYPE", where, () => `needs two tensors of one float dtype, got ${x.dtype} and ${grid.dtype}.`);
  return tidy(() => {
    const dtype = x.dtype === "f64" ? "f64" : "f32";
    const outputs = grid.shape.slice(1, -1);
    const count = outputs.reduce((a, b) => a * b, 1);
    const places = grid.to(dtype).reshape([batch, count, axes]);
    // The grid has the last axis first.
    const at = extents.map((extent, axis) =>
      placeOf(places.select(2, axes - 1 - axis), extent, paddingMode, alignCorners),
    );
    const area = extents.reduce((a, b) => a * b, 1);
    const order = [0, ...extents.map((_, axis) => axis + 2), 1];
    const pixels = x
      .to(dtype)
      .permute(order)
      .reshape([batch * area, channels]);
    const starts = arange(batch, { dtype: "i32", device: x.device }).mul(area).unsqueeze(1);
    /** The pixels at whole places, zeros where they are outside. */
    const read = (whole: readonly Tensor[]) => {
      const inside = whole
        .map((place, axis) => logicalAnd(place.ge(0), place.le(extents[axis]! - 1)))
        .reduce((a, b) => logicalAnd(a, b));
      const index = whole
        .map((place) => choose(inside, place, 0).to("i32"))
        .reduce((index, place, axis) => index.mul(extents[axis]!).add(place));
      const isInside = inside.unsqueeze(-1);
      return choose(isInside, gather(pixels, index.add(starts)), 0);
    };
    const values = mode === "nearest" ? nearest(at, read) : weighted(at, read);
    const rows = values.transpose(1, 2).reshape([batch, channels, ...outputs]);
    return rows.to(x.dtype);
  });
}

function checkChoice(where: string, name: string, value: unknown, known: readonly string[]): void {
  const list = known.map((each) => `"${each}"`).join(", ");
  const isKnown = known.includes(value as string);
  check(
    isKnown,
    "BAD_ARGUMENT",
    where,
    () => `${name} must be one of ${list}, got ${show(value)}.`,
    `Use "${known[0]}".`,
  );
}

type Read = (whole: readonly Tensor[]) => Tensor;

function nearest(at: readonly Tensor[], read: Read): Tensor {
  const values = read(noGrad(() => at.map((place) => round(place))));
  return at.reduce((sum, place) => sum.add(noGradient(place).unsqueeze(-1)), values);
}

/** Zeros whose gradient by x is zeros, as PyTorch's, and not none. */
function noGradient(x: Tensor): Tensor {
  return choose(zerosLike(x.detach()).gt(0), x, 0);
}

/** The pixels at the corners around each place, weighted by how near they are. */
function weighted(at: readonly Tensor[], read: Read): Tensor {
  const low = noGrad(() => at.map((place) => floor(place)));
  const share = at.map((place, axis) => place.sub(low[axis]!));
  const corners = Array.from({ length: 2 ** at.length }, (_, corner) => at.map((_, axis) => (corner >> axis) & 1));
  return corners
    .map((corner) => {
      const weight = corner.map((isHigh, axis) => (isHigh ? share[axis]! : share[axis]!.neg().add(1)));
      const pixels = read(corner.map((isHigh, axis) => low[axis]!.add(isHigh)));
      return pixels.mul(weight.reduce((a, b) => a.mul(b)).unsqueeze(-1));
    })
    .reduce((a, b) => a.add(b));
}

/** From -1 to 1 to the places of pixels, of which those outside are moved inside as the padding says. */
function placeOf(given: Tensor, extent: number, paddingMode: string, alignCorners: boolean): Tensor {
  const place = alignCorners ? given.add(1).mul((extent - 1) / 2) : given.add(1).mul(extent).sub(1).div(2);
  if (paddingMode === "zeros") return place;
  if (paddingMode === "border") return clipped(place, extent - 1);
  const [low, high] = alignCorners ? [0, extent - 1] : [-0.5, extent - 0.5];
  return clipped(reflected(place, low, high), extent - 1);
}

/** From 0 to `high`; without a gradient at both ends, as PyTorch's. */
function clipped(place: Tensor, high: number): Tensor {
  const isInside = logicalAnd(place.gt(0), place.lt(high));
  return choose(
    isInside,
    place,
    noGrad(() => choose(place.ge(high), high, zerosLike(place))),
  );
}

/** Mirrored at `low` and `high` as often as needed. */
function reflected(place: Tensor, low: number, high: number): Tensor {
  const span = high - low;
  if (span === 0) return noGradient(place);
  const far = place.sub(low);
  const distance = far.mul(noGrad(() => choose(far.lt(0), -1, zerosLike(far).add(1))));
  const turns = noGrad(() => floor(distance.div(span)));
  const rest = distance.sub(turns.mul(span));
  const isOdd = noGrad(() => turns.sub(floor(turns.div(2)).mul(2)).gt(0.5));
  return choose(isOdd, rest.neg().add(span), rest).add(low);
}

export interface AffineGridOptions {
  /** -1 and 1 are the middles of the pixels in the corners, in place of their outer edges. Default false. */
  readonly alignCorners?: boolean;
}

/**
 * The places of pixels under affine maps: theta [batch, 2, 3] and size [batch, channels, height, width] give a grid
 * [batch, height, width, 2] for `gridSample`; theta [batch, 3, 4] and a size of five extents give that of volumes.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const same = affineGrid(tensor([[[1, 0, 0], [0, 1, 0]]]), [1, 3, 4, 4]); // each pixel's own place
 */
export function affineGrid(theta: Tensor, size: Shape, options: AffineGridOptions = {}): Tensor {
  const where = "affineGrid";
  checkTensor(where, theta, "theta");
  checkOptions(where, options, { alignCorners: "boolean" });
  const { alignCorners = false } = options;
  const isSize = Array.isArray(size) && size.every((extent) => Number.isInteger(extent) && (extent as number) >= 1);
  const axes = isSize ? size.length - 2 : 0;
  check(
    isSize && (axes === 2 || axes === 3),
    "BAD_ARGUMENT",
    where,
    () => `size must be [batch, channels, ...] with 2 or 3 extents, got ${show(size)}.`,
    "For example [1, 3, 8, 8].",
  );
  const [batch, , ...extents] = size as readonly number[] as [number, number, ...number[]];
  check(
    String(theta.shape) === String([batch, axes, axes + 1]),
    "BAD_SHAPE",
    where,
    () => `theta must be [${batch}, ${axes}, ${axes + 1}], got [${theta.shape}].`,
    "One matrix for each sample.",
  );
  const isFloat = ["f32", "f64", "f16", "bf16"].includes(theta.dtype);
  check(isFloat, "BAD_DTYPE", where, () => `theta must be floats, got ${theta.dtype}.`, 'Use theta.to("f32").');
  return tidy(() => {
    const count = extents.reduce((a, b) => a * b, 1);
    const along = extents.map((extent) => (i: number) => {
      const place = extent === 1 ? 0 : (2 * i) / (extent - 1) - 1;
      return alignCorners ? place : (place * (extent - 1)) / extent;
    });
    const rows = new Float64Array(count * (axes + 1));
    for (let pixel = 0; pixel < count; pixel++) {
      let rest = pixel;
      for (let axis = axes - 1; axis >= 0; axis--) {
        rows[pixel * (axes + 1) + axes - 1 - axis] = along[axis]!(rest % extents[axis]!);
        rest = Math.floor(rest / extents[axis]!);
      }
      rows[pixel * (axes + 1) + axes] = 1;
    }
    const { device } = theta;
    const dtype = theta.dtype === "f64" ? "f64" : "f32";
    const base = tensor(rows, { shape: [count, axes + 1], dtype, device });
    const grid = base.matmul(theta.to(dtype), { transposeB: true });
    return grid.reshape([batch, ...extents, axes]).to(theta.dtype);
  });
}
