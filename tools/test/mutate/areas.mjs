/** Where `npm run mutate` plants bugs, and which tests must notice: the quickest judges first, for the first that fails ends a run. */

/** Programs around the tensors: whatever is wrong below shows in some of them. */
const PROGRAMS = "compile/programs compile/compile tensor/versions";

/** Drawn programs: they take a minute, and find what only two features together do wrong. */
const FUZZER = "/e2e/programs/small-programs";

/** What PyTorch answers of ops, then all tests of ops; and of layers, which need many ops. Rare arguments come last. */
const OPS =
  "ops/ops.torch ops/double-backward ops/gradients ops/zero-dimensional ops/ wrong-arguments /packages/core/testing/sweep";
const LAYERS = "/packages/nn/src/initializers/of-layers /packages/nn/testing/stored-calls /packages/nn/testing/sweep";

const CHECKPOINT = "packages/checkpoint/src";
const NN = "packages/nn/src";
const TRAIN = "packages/train/src";
const PARALLEL = "packages/parallel/src";

/**
 * By name. `files` and `tests` are below `folder`, core's if there is no other; a test that begins with / is in another place.
 * Words are apart by spaces; tests are folders, or files without their ending, and `*` is any one folder.
 * @type {Readonly<Record<string, { readonly folder?: string, readonly files: string, readonly tests: string }>>}
 */
export const areas = {
  optimizer: {
    files: "optimizer/*.ts optimizer/state/*.ts optimizer/gradients/!(clip).ts {stepping,averages}/*.ts",
    tests: `optimizer/ stepping/ averages/ ${PROGRAMS}`,
  },
  clip: { files: "optimizer/gradients/clip.ts", tests: `optimizer/gradients/clip ${PROGRAMS} tensor/memory` },
  autograd: {
    files: "autograd.ts tensor/tape*.ts",
    tests: `autograd grad recompute ops/apply-rule ${PROGRAMS} tensor/memory ops/gradients two-copies`,
  },
  compile: {
    files: "compile/**/*.ts device/tracer.ts",
    tests: `${PROGRAMS} compile/ device/observed optimizer/state/master optimizer/plan ops/indices/check-indices /packages/nn/src/module/compiled two-copies ${FUZZER}`,
  },
  scope: {
    files: "device/scope.ts host/synchronous.ts",
    tests: `autograd grad optimizer/gradients/clip ${PROGRAMS} tensor/memory wrong-arguments two-copies`,
  },
  rule: {
    files: "rule/*.ts",
    tests:
      "rule/ emit/ js/compile ops/apply-rule ops/integers optimizer/gradients/regularizer optimizer/state/packed-state optimizer/state/stochastic-rounding optimizer/state/master",
  },
  "ops-elementwise": {
    files: "ops/elementwise/*.ts ops/{cast,combine,complex,map,promotion}.ts",
    tests: `ops/elementwise/ ops/reduce-into ops/complex ops/promotion ops/integers ${OPS}`,
  },
  "ops-reduce": {
    files: "ops/reduce/*.ts",
    tests: `ops/reduce/ ${OPS}`,
  },
  "ops-shape": {
    files: "ops/shape/*.ts",
    tests: `ops/indexing/ ops/indices/ ${OPS} ${PROGRAMS}`,
  },
  "ops-indexing": {
    files: "ops/{indexing,indices}/*.ts",
    tests: `ops/indices/ ops/indexing/ ${OPS}`,
  },
  "ops-matrices": {
    files: "ops/linear-algebra/*.ts ops/{einsum,matmul}.ts",
    tests: `ops/linear-algebra/ ops/einsum ${OPS}`,
  },
  "ops-windows": {
    files: "ops/windows/*.ts",
    tests: `ops/windows/ /packages/nn/src/layers/windows ${OPS} ${LAYERS}`,
  },
  "ops-rows": {
    files:
      "ops/{rows,fused}/*.ts ops/{autocast-operands,compute,flat-gradient,needing,overwrite,apply-rule*,with-gradient}.ts",
    tests: `ops/apply-rule ops/apply-rule-in-place ops/with-gradient ${OPS} ${PROGRAMS} ${LAYERS}`,
  },
  schedules: { files: "schedules/**/*.ts", tests: "schedules/" },
  distributions: { files: "distributions/**/*.ts", tests: "distributions/" },
  "nn-layers": {
    folder: NN,
    files: "layers/**/*.ts",
    tests: `layers/ shown wrong-arguments autocast module/compiled ${LAYERS}`,
  },
  "nn-recurrent": { folder: NN, files: "recurrent/*.ts", tests: `recurrent/ shown wrong-arguments ${LAYERS}` },
  "nn-attention": {
    folder: NN,
    files: "{attention,transformer}/*.ts",
    tests: `attention/ transformer/ shown wrong-arguments ${LAYERS}`,
  },
  "nn-losses": { folder: NN, files: "losses/*.ts", tests: `losses/ wrong-arguments ${LAYERS}` },
  "nn-module": {
    folder: NN,
    files: "{module,initializers,similarity}/*.ts",
    tests: `module/ initializers/ wrong-arguments ${LAYERS}`,
  },
  optimizers: {
    folder: "packages/optimizers",
    files: "*/src/**/*.ts",
    tests: "*/src/ /packages/testkit/src/golden/ /e2e/goldens/muon /e2e/goldens/lbfgs /e2e/goldens/functional",
  },
  train: { folder: TRAIN, files: "**/*.ts", tests: "fit/ callbacks/ metrics/ look/ tensor-board/ worker/ modes fit" },
  data: { folder: "packages/data/src", files: "**/*.ts", tests: "./" },
  parallel: {
    folder: PARALLEL,
    files: "{communicator,cost,data-parallel,mesh,sampler,sharded}/*.ts",
    tests:
      "sampler/ mesh/ cost/ communicator/ sharded/ data-parallel/data-parallel data-parallel/bucket data-parallel/buffers connect",
  },
  "checkpoint-save": {
    folder: CHECKPOINT,
    files: "save/save.ts",
    tests: "save/save save/errors save/told save/ranks/communicator save/step/retention read/resume",
  },
  "checkpoint-commit": {
    folder: CHECKPOINT,
    files: "save/step/step-folder.ts",
    tests:
      "save/step/step-folder save/step/two-saves save/save save/step/retention read/replaced save/objects save/crash",
  },
  "checkpoint-verify": {
    folder: CHECKPOINT,
    files: "read/verify.ts",
    tests: "read/verify read/errors read/replaced",
  },
  "checkpoint-layout": {
    folder: CHECKPOINT,
    files: "layout/*.ts",
    tests: "layout/ plan/plan save/save read/stream",
  },
  "checkpoint-names": {
    folder: CHECKPOINT,
    files: "formats/names/*.ts formats/*/names.ts formats/torch/optimizers.ts convert/{names,rename}.ts",
    tests: "convert/ formats/ command/command read/resume",
  },
  "checkpoint-pickle": {
    folder: CHECKPOINT,
    files: "{formats,convert}/python/*.ts",
    tests: "formats/python/ formats/registry formats/torch/ convert/torch/",
  },
  "checkpoint-formats": {
    folder: CHECKPOINT,
    files: "formats/{bytes,zip,safetensors,mindspore,keras,paddle,tfjs,torch}/!(names|optimizers).ts formats/*.ts",
    tests: "formats/ convert/",
  },
  "checkpoint-convert": {
    folder: CHECKPOINT,
    files: "convert/{files,zip,safetensors,mindspore,torch}/*.ts convert/convert.ts",
    tests: "convert/ formats/",
  },
};

/** Tests that do for seconds what others do once, those of ranks in processes, where no bug is planted, two that ask for the names of their files, which bundling changes, and one for a process of its own. */
export const LEFT_OUT = [
  "says who made the largest that lives, when that was asked for",
  "10,000 steps",
  "goes through graphs deeper than the call stack",
  "a step that is rejected",
  "a number that changes is found by a later call, with its line",
  "rejects q8 before it was enabled, and says how",
  "asks for enableStochasticRounding",
  "3 ranks have the bits of one process",
  "4 processes hold what the collectives promise",
  "divided state has the bits of whole state: 3 ranks",
  "packs state in 8 bits range by range, a quarter of the bytes, and goes on from it with the same bits",
  "a rank keeps its part of the state, and names what differs",
  "of one rank alone are told by the next collective",
  "a size that comes from a rank whose heading goes to another one is named with the collective",
];

const CORE = "packages/core/src";

/**
 * An area as tools take it: paths are from the root, and the scores of a folder's areas are in one file.
 * @param {string} name
 */
export function areaOf(name) {
  const { folder = CORE, files, tests } = areas[name] ?? { files: "", tests: "" };
  return {
    name,
    files: files.split(" ").map((file) => `${folder}/${file}`),
    tests: tests
      .split(" ")
      .map((test) => (test.startsWith("/") ? test.slice(1) : `${folder}/${test}`.replace("/./", "/"))),
    scores: `${folder.replace(/\/src$/, "")}/mutation.json`,
  };
}

/** What paths of an area's test look like, from the root. @param {string} test */
export function patternOf(test) {
  const pattern = test.replaceAll(".", "\\.").replaceAll("*", "[^/]+");
  return new RegExp(`^${pattern}${test.endsWith("/") ? "" : "\\."}`);
}

/** The area that this process is about. */
export const area = areaOf(process.env.OPT_MUTATED_AREA ?? "");
