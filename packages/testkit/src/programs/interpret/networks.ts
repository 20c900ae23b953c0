/** Products, windows, losses and layers. */
import { sizeOf } from "../numbers";
import type { Shape } from "../program";
import { gather, pad, permute, reshape, transpose, unsqueeze } from "./arranging";
import { abs, add, asNode, type Interpretation, mul, optional, raised, sub, where } from "./elementwise";
import { linear, matmul } from "./linear";
import { constant, filled, flat, type Node, pick, plus, reshaped, times } from "./node";
import { eachPlace, moved, mustHold } from "./places";
import { logSoftmax, mean, sum, variance } from "./reducing";
import { SEQUENCES } from "./sequences";

/** [batch, channels, height, width] to [batch, channels, rows, columns, window rows, window columns]. */
function windows(x: Node, kernel: readonly [number, number], stride: number, padding = 0): Node {
  mustHold(x.shape.length === 4, `images, got [${x.shape}]`);
  const padded = padding === 0 ? x : pad(x, [padding, padding, padding, padding], 0);
  const [batch, channels, height, width] = padded.shape as [number, number, number, number];
  const extent = (size: number, window: number) => Math.floor((size - window) / stride) + 1;
  const shape = [batch, channels, extent(height, kernel[0]), extent(width, kernel[1]), ...kernel];
  mustHold(
    shape.every((each) => each >= 0),
    "windows that fit",
  );
  return moved(padded, shape, ([n, c, i, j, di, dj]) => [n!, c!, i! * stride + di!, j! * stride + dj!]);
}

function conv2d(x: Node, weight: Node, bias: Node | undefined, stride = 1, padding = 0): Node {
  const kernel = weight.shape.slice(2) as unknown as readonly [number, number];
  const places = permute(windows(x, kernel, stride, padding), [0, 2, 3, 1, 4, 5]);
  const [batch, rows, columns] = places.shape as [number, number, number];
  mustHold(places.shape[3] === weight.shape[1], "as many channels as the weight has");
  const flattened = reshape(places, [batch, rows, columns, sizeOf(weight.shape.slice(1))]);
  const result = linear(flattened, reshape(weight, [weight.shape[0]!, sizeOf(weight.shape.slice(1))]), bias);
  return permute(result, [0, 3, 1, 2]);
}

/** The first of the largest of each window. PyTorch's backward mentions x. */
function maxPool2d(x: Node, kernel: number, stride: number): Node {
  const cut = windows(mentioned(x), [kernel, kernel], stride);
  const rows = reshape(cut, [sizeOf(cut.shape.slice(0, 4)), kernel * kernel]);
  const places = eachPlace([rows.shape[0]!], ([row]) => {
    let best = row! * kernel * kernel;
    for (let i = 1; i < kernel * kernel; i++) {
      if (rows.data[row! * kernel * kernel + i]! > rows.data[best]!) best = row! * kernel * kernel + i;
    }
    return best;
  });
  return pick(rows, places, cut.shape.slice(0, 4));
}

/** x, whose gradient has zeros for its own gradient by x. */
const mentioned = (x: Node): Node =>
  times(
    x,
    flat(x, () => 1),
  );

function normalized(x: Node, axes: readonly number[], eps: number): Node {
  const options = { axis: axes, keepDim: true };
  return mul(sub(x, mean(x, options)), raised(add(variance(x, options), eps), -0.5));
}

const lastAxes = (x: Node, count: number): number[] => x.shape.map((_, i) => i).slice(x.shape.length - count);

function layerNorm(x: Node, weight: Node, bias?: Node): Node {
  mustHold(
    String(x.shape.slice(x.shape.length - weight.shape.length)) === String(weight.shape),
    "a weight of the axes",
  );
  const scaled = mul(normalized(x, lastAxes(x, weight.shape.length), 1e-5), weight);
  return bias === undefined ? scaled : add(scaled, bias);
}

/** A weight or bias of channels, which are axis 1. */
const ofChannels = (x: Node, rank: number): Node => {
  mustHold(rank >= 2, "channels");
  return reshaped(x, [x.shape[0]!, ...Array(rank - 2).fill(1)]);
};

function groupNorm(x: Node, weight: Node, bias: Node, groups: number): Node {
  const [batch, channels, ...rest] = x.shape as [number, number, ...number[]];
  const apart = reshape(x, [batch, groups, (channels / groups) * sizeOf(rest)]);
  const scaled = mul(reshape(normalized(apart, [2], 1e-5), x.shape), ofChannels(weight, x.shape.length));
  return add(scaled, ofChannels(bias, x.shape.length));
}

const batchNorm: Interpretation = ([x, weight, bias], options) => {
  const { training, buffers, momentum = 0.1 } = options as unknown as BatchNormFacts;
  const own = asNode(x!);
  const { running_mean: runningMean, running_var: runningVar, num_batches_tracked: counted } = buffers;
  const axes = own.shape.map((_, i) => i).filter((axis) => axis !== 1);
  const kept = { axis: axes, keepDim: true };
  const apply = (center: Node, spread: Node): Node => {
    const normal = mul(sub(own, center), raised(add(spread, 1e-5), -0.5));
    const rank = own.shape.length;
    return add(mul(normal, ofChannels(asNode(weight!), rank)), ofChannels(asNode(bias!), rank));
  };
  if (!training && runningMean)
    return apply(ofChannels(runningMean, own.shape.length), ofChannels(runningVar!, own.shape.length));
  const [center, spread] = [mean(own, kept), variance(own, kept)];
  if (runningMean) {
    counted!.data[0]!++;
    const share = momentum ?? 1 / counted!.data[0]!;
    const count = own.data.length / own.shape[1]!;
    const follow = (buffer: Node, found: Node, factor: number) =>
      buffer.data.forEach((v, i) => {
        buffer.data[i] = (1 - share) * v + share * factor * found.data[i]!;
      });
    follow(runningMean, center, 1);
    follow(runningVar!, spread, count / (count - 1));
  }
  return apply(center, spread);
};

interface BatchNormFacts {
  readonly training: boolean;
  readonly momentum?: number | null;
  /** By their names in a state dictionary; empty without running statistics. */
  readonly buffers: Readonly<Record<string, Node>>;
}

/** Losses of rows of logits; 0 where the label is -100. */
function crossEntropyRows(logits: Node, labels: Node): Node {
  mustHold(logits.shape.length > 0, "rows of logits");
  mustHold(String(logits.shape.slice(0, -1)) === String(labels.shape), "a label for each row");
  const classes = logits.shape.at(-1)!;
  const logs = logSoftmax(logits, -1);
  const places = Array.from(labels.data, (label, row) => (label === -100 ? -1 : row * classes + label));
  return mul(pick(logs, places, labels.shape), -1);
}

/** Of the rows whose label counts: NaN where no label counts. */
function crossEntropy(logits: Node, labels: Node): Node {
  const losses = crossEntropyRows(logits, labels);
  const counted = labels.data.filter((label) => label !== -100).length;
  const total = sum(losses);
  // 0 / 0, of which PyTorch's backward makes 0.
  return counted > 0 ? mul(total, 1 / counted) : plus(total, filled([], Number.NaN));
}

/** By the two nearest: as PyTorch counts places, of a scale that was given. */
function interpolateLinear(x: Node, scale: number): Node {
  mustHold(x.shape.length === 3 && sizeOf(x.shape) > 0, "[batch, channels, length]");
  const [batch, channels, length] = x.shape as [number, number, number];
  const count = Math.floor(length * scale);
  mustHold(count >= 1, "a length");
  const shape = [batch, channels, count];
  // An extent that stays is copied, whatever the scale says.
  const places = Array.from({ length: count }, (_, i) =>
    count === length ? i : Math.min(Math.max((i + 0.5) / scale - 0.5, 0), length - 1),
  );
  const share = constant({ shape: [count], data: Float64Array.from(places, (at) => at - Math.floor(at)) });
  const before = moved(x, shape, ([n, c, i]) => [n!, c!, Math.floor(places[i!]!)]);
  const after = moved(x, shape, ([n, c, i]) => [n!, c!, Math.min(Math.floor(places[i!]!) + 1, length - 1)]);
  return add(mul(before, sub(1, share)), mul(after, share));
}

function smoothL1(x: Node, target: Node): Node {
  const apart = sub(x, target);
  const isNear = constant({ shape: apart.shape, data: apart.data.map((v) => Number(Math.abs(v) < 1)) });
  const far = sub(times(apart, constant({ shape: apart.shape, data: apart.data.map(Math.sign) })), 0.5);
  return mean(where(isNear, mul(times(apart, apart), 0.5), far));
}

const sameShape = (a: Node, b: Node): void => mustHold(String(a.shape) === String(b.shape), "equal shapes");

export const NETWORKS: Readonly<Record<string, Interpretation>> = {
  matmul: ([a, b], { transposeA, transposeB }) => {
    const [x, y] = [asNode(a!), asNode(b!)];
    return matmul(transposeA ? transpose(x) : x, transposeB ? transpose(y) : y);
  },
  ...SEQUENCES,
  layerNorm: ([x, weight, bias]) => layerNorm(asNode(x!), asNode(weight!), optional(bias)),
  LayerNorm: ([x, weight, bias]) => layerNorm(asNode(x!), asNode(weight!), optional(bias)),
  RMSNorm: ([x, weight], { eps }) => {
    const own = asNode(x!);
    const size = mean(times(own, own), { axis: -1, keepDim: true });
    return mul(mul(own, raised(add(size, eps as number), -0.5)), weight!);
  },
  GroupNorm: ([x, weight, bias], { groups }) => groupNorm(asNode(x!), asNode(weight!), asNode(bias!), groups as number),
  Linear: ([x, weight, bias]) => linear(asNode(x!), asNode(weight!), optional(bias)),
  conv2d: ([x, weight], { stride, padding }) =>
    conv2d(asNode(x!), asNode(weight!), undefined, stride as number, padding as number),
  Conv2d: ([x, weight, bias], { stride, padding }) =>
    conv2d(asNode(x!), asNode(weight!), optional(bias), stride as number, padding as number),
  Conv1d: ([x, weight, bias], { stride }) => {
    const wide = (node: Node) => unsqueeze(node, 2);
    const [own, kernel] = [wide(asNode(x!)), wide(asNode(weight!))];
    const places = moved(
      own,
      [...own.shape.slice(0, 2), Math.floor((own.shape[3]! - 2) / (stride as number)) + 1, 2],
      ([n, c, i, d]) => [n!, c!, 0, i! * (stride as number) + d!],
    );
    const flattened = permute(places, [0, 2, 1, 3]);
    const rows = reshape(flattened, [...flattened.shape.slice(0, 2), sizeOf(flattened.shape.slice(2))]);
    const result = linear(rows, reshape(kernel, [kernel.shape[0]!, sizeOf(kernel.shape.slice(1))]), asNode(bias!));
    return permute(result, [0, 2, 1]);
  },
  maxPool2d: ([x], { kernel, stride }) => maxPool2d(asNode(x!), kernel as number, stride as number),
  avgPool2d: ([x], { kernel, stride }) =>
    mean(windows(mentioned(asNode(x!)), [kernel as number, kernel as number], stride as number), { axis: [4, 5] }),
  crossEntropy: ([logits, labels]) => crossEntropyRows(asNode(logits!), asNode(labels!)),
  meanCrossEntropy: ([logits, labels]) => crossEntropy(asNode(logits!), asNode(labels!)),
  interpolate: ([x], { scaleFactor }) => interpolateLinear(asNode(x!), scaleFactor as number),
  l1Loss: ([x, target]) => {
    sameShape(asNode(x!), asNode(target!));
    return mean(abs(sub(x!, target!)));
  },
  smoothL1Loss: ([x, target]) => {
    sameShape(asNode(x!), asNode(target!));
    return smoothL1(asNode(x!), asNode(target!));
  },
  oneHot: ([indices], { classes }) => {
    const { shape, data } = asNode(indices!);
    const hot = new Float64Array(data.length * (classes as number));
    data.forEach((index, row) => {
      hot[row * (classes as number) + index] = 1;
    });
    return constant({ shape: [...shape, classes as number] as Shape, data: hot });
  },
  BatchNorm1d: batchNorm,
  BatchNorm2d: batchNorm,
  /** Of a probability of 0 or 1. */
  Dropout: ([x], { training, p }) => (training && p === 1 ? mul(x!, 0) : asNode(x!)),
  Embedding: ([indices, weight], { paddingIdx }) => {
    const [rows, table] = [asNode(indices!), asNode(weight!)];
    const found = gather(table, rows);
    if (paddingIdx === undefined) return found;
    const isPadding = constant({ shape: [...rows.shape, 1], data: rows.data.map((row) => Number(row === paddingIdx)) });
    return where(isPadding, constant(found), found);
  },
};
