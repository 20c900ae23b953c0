/**
 * Faults that users have met, as small edits of today's sources: what `npm run plant` plants. An edit replaces text that its file has once.
 *
 * @typedef {{ readonly file: string, readonly find: string, readonly by: string }} Edit
 * @typedef {{ readonly name: string, readonly says: string, readonly edits: readonly Edit[], readonly tests?: readonly string[] }} Fault
 * `tests` are parts of the paths of plain tests. Without them all run, those that are near the edited files first.
 */

const PROGRAMS = "e2e/programs/small-programs";
/** These are between two features each. */
const CONFIGURATIONS = "e2e/programs/configurations/";

/** @public Loaded by its path, as files of --faults are. @type {readonly Fault[]} */
export const faults = [
  {
    name: "A1",
    says: "second gradients are null where PyTorch has zeros",
    edits: [
      {
        file: "packages/core/src/autograd.ts",
        find: "if (createGraph && g !== null && needs[i] && node.flat.includes(i)) return flat(g, node.inputs[i]!);",
        by: "",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/grad.test.ts", "packages/core/src/ops/double-backward"],
  },
  {
    name: "A1.abs",
    says: "the same of abs alone, and with it of l1Loss and norms",
    edits: [
      {
        file: "packages/core/src/ops/elementwise/elementwise-table.ts",
        find: "derivatives: [(g, _y, x) => mul(g, where(less(x!, 0), -1, isZero(x!, 0, 1)))],\n    flat: [0],",
        by: "derivatives: [(g, _y, x) => mul(g, where(less(x!, 0), -1, isZero(x!, 0, 1)))],",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/grad.test.ts", "packages/core/src/ops/double-backward"],
  },
  {
    name: "A2",
    says: "what is written to a slice is lost",
    edits: [
      {
        file: "packages/core/src/tensor/copied.ts",
        find: "  const mark = presentMark(target);\n  if (mark === null) return;\n  const line",
        by: "  const mark = presentMark(target);\n  if (mark !== null || mark === null) return;\n  const line",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/tensor/"],
  },
  {
    name: "A3",
    says: "parameters() of a frozen module is empty",
    edits: [
      {
        file: "packages/nn/src/module/module.ts",
        find: "isParameter(tensor) && (!trainable || tensor.requiresGrad)",
        by: "isParameter(tensor) && (trainable || tensor.requiresGrad)",
      },
    ],
    tests: [PROGRAMS, "packages/nn/src/module/"],
  },
  {
    name: "A4",
    says: "concat takes tensors of several ranks",
    edits: [
      {
        file: "packages/core/src/ops/shape/shape.ts",
        find: "tensor.shape.length === first.shape.length &&",
        by: "",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/ops/", "packages/core/src/wrong-arguments"],
  },
  {
    name: "A5",
    says: "a sparse gradient has the padding's rows",
    edits: [
      {
        file: "packages/core/src/row-sparse/first-places.ts",
        find: "const known = rows[i]! < 0 ? -1 : seen.get(rows[i]!);",
        by: "const known = seen.get(rows[i]!);",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/row-sparse/", "e2e/goldens/sparse-as-dense"],
  },
  {
    name: "A6",
    says: "parts of one memory overwrite one another while they are read",
    edits: [
      {
        file: "packages/core/src/device/overlap.ts",
        find: "  if (!intersect(read, written)) return undefined;\n",
        by: "  if (read !== written) return undefined;\n",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/tensor/span"],
  },
  {
    name: "A7",
    says: "integers can't be picked on webgpu",
    edits: [
      {
        file: "packages/core/src/ops/compute.ts",
        find: 'const isInteger = dtype === "i32" || dtype === "u8";\n  return',
        by: "const isInteger = false;\n  return",
      },
    ],
    tests: [PROGRAMS, "e2e/docs/coverage"],
  },
  {
    name: "A8",
    says: "running products leave the range on the way",
    edits: [
      {
        file: "packages/core/src/ops/reduce/recurrence.ts",
        find: "backend.sharesMemory ? byHost(terms, direction) : tidy(() => byRounds(terms, direction))",
        by: "tidy(() => byRounds(terms, direction))",
      },
      {
        file: "packages/core/src/ops/reduce/cumsum.ts",
        find: 'if (dtype === "f32") return device.backend.dtypes.includes("f64") ? "f64" : "f32";',
        by: "",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/ops/reduce/"],
  },
  {
    name: "A9",
    says: "interpolate by a scale that keeps the extent moves what stays",
    edits: [
      {
        file: "packages/nn/src/layers/resize/interpolate.ts",
        find: "count === extent ? i : alignCorners",
        by: "alignCorners",
      },
    ],
    tests: [PROGRAMS, "packages/nn/src/layers/"],
  },
  {
    name: "A10",
    says: "crossEntropy of ignored labels has NaN under createGraph",
    edits: [
      {
        file: "packages/core/src/ops/rows/cross-entropy.ts",
        find: 'const counted = elementwise("select", [counts, reshape(g, column), 0]);',
        by: "const counted = reshape(g, column);",
      },
    ],
    tests: [PROGRAMS, "packages/nn/src/losses/"],
  },
  {
    name: "A11",
    says: "functional has no gradient by options that set the first state",
    edits: [
      {
        file: "packages/core/src/stepping/functional.ts",
        find: "const value: unknown = learned[key] ?? 0;",
        by: "const value: unknown = first[key] ?? learned[key] ?? 0;",
      },
    ],
    tests: ["e2e/goldens/functional"],
  },
  {
    name: "compile.write",
    says: "a fused map reads what was written in between",
    edits: [
      {
        file: "packages/core/src/compile/passes/fuse-maps.ts",
        find: "        !uses.hasHostBetween(index, reader) &&\n        producer.inputs.every((input) => !uses.isWrittenBetween(input.memory, index, reader)),",
        by: "        !uses.hasHostBetween(index, reader),",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "compile.copy",
    says: "a copy falls out though its original is written before it is read",
    edits: [
      {
        file: "packages/core/src/compile/passes/copies.ts",
        find: "  if (uses.isWrittenBetween(source.memory, index, (readers.at(-1) ?? index) + 1)) return;\n",
        by: "",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "compile.modes",
    says: "a trace does not follow the modes of layers",
    edits: [
      {
        file: "packages/core/src/compile/tracing.ts",
        find: "    this.#properties.reads(object, key);\n",
        by: '    if (key !== "training") this.#properties.reads(object, key);\n',
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "compile.outside",
    says: "a number that changes in each call is never found",
    edits: [
      {
        file: "packages/core/src/compile/compile.ts",
        find: "const mayReplace = !entry.isConfirmed && !entry.isSecond;",
        by: "const mayReplace = !entry.isConfirmed;",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "recurrent.dropout",
    says: "recurrent layers drop their input",
    edits: [
      {
        file: "packages/nn/src/recurrent/recurrent.ts",
        find: "if (layer > 0 && this.training && this.dropout !== 0)",
        by: "if (this.training && this.dropout !== 0)",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "attention.causal",
    says: "without a kernel a causal mask is aligned at the other corner",
    edits: [
      {
        file: "packages/nn/src/attention/scaled-dot-product-attention.ts",
        find: "arange(queries, { device }).unsqueeze(1)",
        by: "arange(queries, { device }).add(keys - queries).unsqueeze(1)",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "sort.ties",
    says: "equals of another part of a long row lose their order where the host does not see memory",
    edits: [
      {
        file: "packages/core/src/ops/reduce/sort.ts",
        find: "atAll, slice(at, start, end)]",
        by: "atAll, slice(at, 0, end - start)]",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/ops/reduce/order"],
  },
  {
    name: "backward.twice",
    says: "a second backward overwrites gradients",
    edits: [
      {
        file: "packages/core/src/autograd.ts",
        find: "  else addInto(grad, gradient);\n",
        by: "  else grad.set(gradient);\n",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "backward.freed",
    says: "a freed graph is differentiated once more",
    edits: [
      {
        file: "packages/core/src/autograd.ts",
        find: "      node.checkNotFreed();\n",
        by: "",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "backward.tied",
    says: "a row-sparse gradient replaces that of the same weight elsewhere",
    edits: [
      {
        file: "packages/core/src/autograd.ts",
        find: "leaf.grad = sumOf(grad, gradient);",
        by: "leaf.grad = gradient;",
      },
    ],
    tests: [PROGRAMS, "packages/core/src/adds-to-grad"],
  },
  {
    name: "hooks.gradient",
    says: "a gradient's hook runs when the first of several parts is there",
    edits: [
      {
        file: "packages/core/src/autograd.ts",
        find: "if ((input as Tensor | null)?.gradientHooks) last.set(input, node);",
        by: "if ((input as Tensor | null)?.gradientHooks && !last.has(input)) last.set(input, node);",
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "hooks.forward",
    says: "a trace does not follow a new hook after forward",
    edits: [
      {
        file: "packages/core/src/compile/tracing.ts",
        find: "    this.#properties.reads(object, key);\n",
        by: '    if (key !== "forward") this.#properties.reads(object, key);\n',
      },
    ],
    tests: [PROGRAMS],
  },
  {
    name: "logsumexp.nothing",
    says: "logsumexp has a gradient of NaN where all are -Infinity",
    edits: [
      {
        file: "packages/core/src/ops/reduce/logsumexp.ts",
        find: 'const shift = elementwise("select", [elementwise("eq", [total, Number.NEGATIVE_INFINITY]), 0, total]);',
        by: "const shift = total;",
      },
    ],
    tests: ["packages/core/src/ops/reduce/logsumexp"],
  },
  {
    name: "torch.initial-lr",
    says: "a .pt has the present lr as the one with which a schedule began",
    edits: [
      {
        file: "packages/checkpoint/src/convert/torch/write-state-dict.ts",
        find: "{ initialLr: base[g] ?? lr }",
        by: "{ initialLr: lr }",
      },
    ],
    tests: ["packages/checkpoint/src/convert/torch/initial-lr"],
  },
  {
    name: "shares.uneven",
    says: "the second of several uneven shares lacks a sample",
    edits: [
      {
        file: "packages/data/src/data-loader.ts",
        find: "order.subarray(...part(order.length))",
        by: "order.subarray(...part(order.length)).slice(0, rank === 1 ? -1 : undefined)",
      },
    ],
    tests: ["packages/data/src/"],
  },
  {
    name: "batch-norm.momentum",
    says: "BatchNorm with momentum 0 averages its running statistics over all batches",
    edits: [
      {
        file: "packages/nn/src/layers/norm/batch-norm.ts",
        find: "return this.momentum ?? div",
        by: "return this.momentum || div",
      },
    ],
    tests: ["packages/nn/testing/sweep"],
  },
  {
    name: "transformer.eps",
    says: "the last norms of Transformer's stacks have no layerNormEps",
    edits: [
      {
        file: "packages/nn/src/transformer/transformer.ts",
        find: "return new LayerNorm(width, { eps, bias, dtype, device });",
        by: "return new LayerNorm(width, { bias, dtype, device });",
      },
    ],
    tests: ["packages/nn/testing/sweep"],
  },
  {
    name: "indexAdd.alpha",
    says: "alpha of indexAdd is lost where x or the index is a number",
    edits: [
      {
        file: "packages/core/src/ops/indices/scatter.ts",
        find: "(x, indices, source) => indexAdd(x, along, indices, source, options));",
        by: "(x, indices, source) => indexAdd(x, along, indices, source));",
      },
    ],
    tests: ["packages/core/testing/sweep"],
  },
  {
    name: "warmup.base",
    says: "LinearWarmupLR stays at endLr after the warm-up",
    edits: [
      {
        file: "packages/core/src/schedules/linear-warmup.ts",
        find: "if (epoch >= warmupSteps) return this.baseLr(index);",
        by: "if (epoch >= warmupSteps) return ends[index] as number;",
      },
    ],
    tests: ["packages/core/src/schedules/"],
  },
  {
    name: "resume.tensorBoard",
    says: "TensorBoard gets the losses from before a resume a second time",
    edits: [
      {
        file: "packages/train/src/callbacks/tensor-board.ts",
        find: "written = history.losses.length;",
        by: "written = 0;",
      },
    ],
    tests: ["packages/train/src/callbacks/"],
  },
  {
    name: "torch.fnuz",
    says: "two element types of float8 are exchanged, read and written",
    edits: [
      {
        file: "packages/checkpoint/src/formats/torch/tensors.ts",
        find: 'F8_E4M3FNUZ: ["float8_e4m3fnuz"],',
        by: 'F8_E4M3FNUZ: ["float8_e5m2fnuz"],',
      },
      {
        file: "packages/checkpoint/src/formats/torch/tensors.ts",
        find: 'F8_E5M2FNUZ: ["float8_e5m2fnuz"],',
        by: 'F8_E5M2FNUZ: ["float8_e4m3fnuz"],',
      },
    ],
    tests: ["packages/checkpoint/src/formats/torch/dtypes"],
  },
  {
    name: "torch.ns-steps",
    says: "a .pt has Muon's ns_steps as a float",
    edits: [
      {
        file: "packages/checkpoint/src/convert/torch/write-groups.ts",
        find: 'const COUNTS = ["ns_steps", "max_iter",',
        by: 'const COUNTS = ["max_iter",',
      },
    ],
    tests: ["packages/checkpoint/src/convert/torch/groups"],
  },
  {
    name: "dcp.properties",
    says: "a DCP folder whose properties are a dict has no element types",
    edits: [
      {
        file: "packages/checkpoint/src/formats/torch/dcp-metadata.ts",
        find: 'const type = state instanceof Map ? state.get("dtype") : itemsOf(state)[0];',
        by: "const type = itemsOf(state)[0];",
      },
    ],
    tests: ["packages/checkpoint/src/formats/torch/dtypes"],
  },
  {
    name: "dcp.older",
    says: "DCP folders of torch 2.0 to 2.2 are refused",
    edits: [
      {
        file: "packages/checkpoint/src/formats/torch/dcp-metadata.ts",
        find: '...["TensorProperties", "MEM_FORMAT_ENCODING"].map(',
        by: '...["MEM_FORMAT_ENCODING"].map(',
      },
    ],
    tests: ["packages/checkpoint/src/formats/torch/dtypes"],
  },
  {
    name: "resume.logs",
    says: "an epoch's logs begin with the validation of the one before, but not after a resume",
    edits: [
      {
        file: "packages/train/src/fit/train-state.ts",
        find: "    this.totals.reset();\n    this.validated = {};\n",
        by: "    this.totals.reset();\n",
      },
    ],
    tests: ["packages/train/src/callbacks/"],
  },
  {
    name: "compile.copies",
    says: "a compiled function reads what the same launch overwrites",
    edits: [
      {
        file: "packages/core/src/compile/passes/copies.ts",
        find: "(readers.at(-1) ?? index) + 1)",
        by: "readers.at(-1) ?? index)",
      },
    ],
    tests: ["e2e/goldens/overlap"],
  },
  {
    name: "zip.count",
    says: "a zip of Python with more than 65,535 members is called damaged",
    edits: [
      {
        file: "packages/checkpoint/src/formats/zip/read.ts",
        find: "if (count === SEE_WIDE_COUNT || size === SEE_WIDE || begin === SEE_WIDE) {",
        by: "if (size === SEE_WIDE || begin === SEE_WIDE) {",
      },
    ],
    tests: ["packages/checkpoint/src/convert/zip"],
  },
  {
    name: "mindspore.step",
    says: "parts of MindSpore's optimizer parallelism are joined in a wrong order",
    edits: [
      {
        file: "packages/checkpoint/src/formats/mindspore/strategy.ts",
        find: "(Math.floor(rank / Math.max(1, shardStep)) % shardSize)",
        by: "(rank % shardSize)",
      },
    ],
    tests: ["packages/checkpoint/src/formats/registry"],
  },
  {
    name: "safetensors.columns",
    says: "safetensors shards that are cut by columns are read with too few",
    edits: [
      {
        file: "packages/checkpoint/src/formats/safetensors/read-shards.ts",
        find: "for (const [d, end] of reach.entries()) known.shape[d] = Math.max(known.shape[d]!, end);",
        by: "if (reach.length > 0) known.shape[0] = Math.max(known.shape[0]!, reach[0]!);",
      },
    ],
    tests: ["packages/checkpoint/src/formats/safetensors/read"],
  },
  {
    name: "clip x placement",
    says: "clipping takes a rank's part for the whole",
    edits: [
      {
        file: "packages/core/src/optimizer/gradients/norm.ts",
        find: "const placements = grads.map(({ placement }) => placement);",
        by: "const placements = grads.map(() => null);",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "scaler x placement",
    says: "each rank skips the steps of its own part",
    edits: [
      {
        file: "packages/core/src/loss-scaling/scaler.ts",
        find: "return axes.length === 0 ? found : largestOf(found, axes);",
        by: "return found;",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "sampler x world",
    says: "a loader counts the samples of one rank alone",
    edits: [
      {
        file: "packages/data/src/data-loader.ts",
        find: "epoch.begun + epoch.served * this.batchSize * this.#share.ranks)",
        by: "epoch.begun + epoch.served * this.batchSize)",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "EMA x skip",
    says: "skipped steps move averages",
    edits: [
      {
        file: "packages/train/src/fit/step.ts",
        find: "if (average && !scaler!.stepWasSkipped) average();",
        by: "if (average) average();",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "accumulate x last window",
    says: "a short last window is divided as a whole one",
    edits: [
      {
        file: "packages/train/src/fit/window.ts",
        find: "    this.#write(this.#divisor, this.#weight);",
        by: "    this.#write(this.#divisor, Math.max(this.#weight, this.#written.get(this.#divisor) ?? 1));",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "frozen x unnamed state",
    says: "state without names goes to other parameters where some are frozen",
    edits: [
      {
        file: "packages/core/src/optimizer/state/state-dict.ts",
        find: "byPosition ? savedNames[i]! : slot.name",
        by: "byPosition ? (Object.keys(saved.state)[i] ?? savedNames[i]!) : slot.name",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "tie x FSDP",
    says: "a divided model saves the second name of a tied weight whole",
    edits: [
      {
        file: "packages/parallel/src/fully-sharded/fully-sharded.ts",
        find: "return Object.fromEntries(this.namedTensors().map(([name, x]) => [name, x.detach()]));",
        by: "const wholes = this.module.namedTensors().map(([, x]) => x); return Object.fromEntries(this.namedTensors().map(([name, x], i) => [name, (wholes.indexOf(wholes[i]!) < i ? wholes[i]! : x).detach()]));",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "recompute x dropout x ranks",
    says: "recomputation draws other numbers",
    edits: [
      {
        file: "packages/core/src/recompute.ts",
        find: "        generator.loadStateDict(cell.state);\n",
        by: "",
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "q8 x resume",
    says: "resumed state in 8 bits has signs that it had not",
    edits: [
      {
        file: "packages/core/src/optimizer/state/packed-state.ts",
        find: "this.zeros([[values.shape]], format, values.device)",
        by: 'this.zeros([[values.shape]], isPacked(format) ? "q8" : format, values.device)',
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "schedule x skip",
    says: "skipped steps move the schedule",
    edits: [
      {
        file: "packages/train/src/fit/loop.ts",
        find: '    else if (schedule && scheduleEvery === "step"',
        by: '    if (schedule && scheduleEvery === "step"',
      },
    ],
    tests: [CONFIGURATIONS],
  },
  {
    name: "units x nested list",
    says: "lists of lists are units, which nothing frees",
    edits: [
      {
        file: "packages/parallel/src/fully-sharded/units.ts",
        find: "(isContainer(child) ? unitsOf(child) : [child])",
        by: "(isContainer(child) ? [...child.namedChildren()].map(([, inner]) => inner) : [child])",
      },
    ],
    tests: ["packages/parallel/src/fully-sharded/units.test", CONFIGURATIONS],
  },
];
