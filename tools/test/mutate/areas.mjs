/** Where `npm run mutate` plants bugs, and which tests must notice: the quickest judges first, for the first that fails ends a run. */

/** Programs around the tensors: whatever is wrong below shows in some of them. */
const PROGRAMS = "compile/programs compile/compile tensor/versions";

/**
 * By name. Paths are below packages/<package>/src, core's without a package; words are apart by spaces; tests are folders, or files without their ending.
 * @type {Readonly<Record<string, { readonly package?: string, readonly files: string, readonly tests: string }>>}
 */
export const areas = {
  optimizer: {
    files: "optimizer/*.ts optimizer/state/*.ts optimizer/gradients/!(clip).ts {stepping,averages}/*.ts",
    tests: `optimizer/ stepping/ averages/ ${PROGRAMS}`,
  },
  clip: { files: "optimizer/gradients/clip.ts", tests: `optimizer/gradients/clip ${PROGRAMS} tensor/memory` },
  autograd: {
    files: "autograd.ts tensor/tape*.ts",
    tests: `autograd grad ops/apply-rule ${PROGRAMS} tensor/memory ops/gradients two-copies`,
  },
  compile: {
    files: "compile/**/*.ts device/tracer.ts",
    tests: `${PROGRAMS} optimizer/state/master optimizer/plan device/device ops/indices/check-indices two-copies`,
  },
  scope: {
    files: "device/scope.ts host/synchronous.ts",
    tests: `autograd grad optimizer/gradients/clip ${PROGRAMS} tensor/memory two-copies`,
  },
  rule: {
    files: "rule/*.ts",
    tests: "rule/ emit/ js/compile ops/apply-rule ops/integers optimizer/gradients/regularizer",
  },
  schedules: { files: "schedules/**/*.ts", tests: "schedules/" },
  "checkpoint-save": {
    package: "checkpoint",
    files: "save/save.ts",
    tests: "save/save save/errors save/told save/ranks/communicator save/step/retention checkpoint read/resume",
  },
  "checkpoint-commit": {
    package: "checkpoint",
    files: "save/step/step-folder.ts",
    tests:
      "save/step/step-folder save/step/two-saves save/save save/step/retention read/replaced save/objects save/crash",
  },
  "checkpoint-verify": {
    package: "checkpoint",
    files: "read/verify.ts",
    tests: "read/verify read/errors read/replaced",
  },
  "checkpoint-layout": {
    package: "checkpoint",
    files: "layout/*.ts",
    tests: "layout/ plan/plan save/save read/stream",
  },
  "checkpoint-names": {
    package: "checkpoint",
    files: "formats/names/*.ts formats/*/names.ts formats/torch/optimizers.ts convert/{names,rename}.ts",
    tests: "convert/ formats/ command/command read/resume",
  },
  "checkpoint-pickle": {
    package: "checkpoint",
    files: "{formats,convert}/python/*.ts",
    tests: "formats/python/ formats/registry formats/torch/ convert/torch/",
  },
  "checkpoint-formats": {
    package: "checkpoint",
    files: "formats/{bytes,zip,safetensors,mindspore,keras,paddle,tfjs,torch}/!(names|optimizers).ts formats/*.ts",
    tests: "formats/ convert/",
  },
  "checkpoint-convert": {
    package: "checkpoint",
    files: "convert/{files,zip,safetensors,mindspore,torch}/*.ts convert/convert.ts",
    tests: "convert/ formats/",
  },
};

/** Tests that do for seconds what others do once, and two that ask for the names of their files, which bundling changes. */
export const LEFT_OUT = [
  "says who made the largest that lives, when that was asked for",
  "10,000 steps",
  "goes through graphs deeper than the call stack",
  "a step that is rejected",
  "a number that changes is found by a later call, with its line",
];

const name = process.env.OPT_MUTATED_AREA ?? "";

/** The area that this process is about. */
const { package: folder = "core", files, tests } = areas[name] ?? { files: "", tests: "" };
export const area = { name, package: folder, files: files.split(" "), tests: tests.split(" ") };
