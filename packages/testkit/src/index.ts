/** What the tests of all packages share. Importing it registers the matcher `toAgreeWith`. */
import "./numbers/matcher";

export type { ContractTolerances } from "./contract/context";
export { type ContractDevice, contractSuite, rulesSuite, whyUnavailable } from "./contract/suite";
export {
  argumentsOf,
  type Chosen,
  type Definition,
  definitionsIn,
  expressionOf,
  type Operand,
  operandsOf,
  resultsOf,
} from "./definition-calls";
export { DIFFERENTIABLE_OPS, inputsOf } from "./differentiable-ops";
export { EXACT_DEVICES, eachDevice } from "./each-device";
export { expectCode } from "./expect-code";
export { type AdafactorGolden, adafactorGoldens } from "./golden/adafactor";
export { readGoldenJson, readPackageGoldens } from "./golden/files";
export { type MuonGolden, muonGoldens } from "./golden/muon";
export { type OptaxGolden, optaxGoldens } from "./golden/optax";
export type { OptimizerClass, OptimizerLike, OptimizerOptions } from "./golden/optimizer";
export { optimizerSuite } from "./golden/optimizer-suite";
export { expectGoldenTrace, type GoldenReport, type Run, runOptimizer, runTorchCase } from "./golden/run-optimizer";
export { type NamedArray, readSafetensors } from "./golden/safetensors";
export {
  float64Runs,
  goldenRun,
  kerasTable,
  type OptimizerRun,
  optionsFrom,
  type SemanticsCase,
  semanticsGolden,
  semanticsGoldens,
} from "./golden/semantics";
export { type GoldenRow, goldenSuite } from "./golden/suite";
export { type EndState, type TorchCase, torchGoldens } from "./golden/torch";
export { type TorchEnd, type TorchRun, torchRuns } from "./golden/torch-runs";
export { type GptTraining, type MnistTraining, type TrainedBy, trainingGolden } from "./golden/training";
export { type GradCheckOptions, gradCheck } from "./gradient-check";
export type { Numbers, Tolerance } from "./numbers/compare";
export { compareNumbers } from "./numbers/compare";
export {
  divisors,
  FAR_DIVISORS,
  squaresOfAllKinds,
  squaresOfAllMantissas,
  wrongQuotients,
} from "./numbers/divided-roots";
export { Random } from "./numbers/random";
export {
  type SeededBuffersOptions,
  type SeededOptions,
  seededArray,
  seededBuffers,
  seededIndices,
  seededScalars,
} from "./numbers/seeded";
export { SPECIALS } from "./numbers/specials";
export { hexadecimal, ulpDistance } from "./numbers/ulp";
export type { OpCase } from "./op-case";
export {
  campaign,
  kindsOf,
  newReport,
  ProgramFailure,
  type Report,
  SCRIPTS,
  SMALL,
  tryProgram,
} from "./programs/campaign";
export { countFeatures, programsOfFeatures } from "./programs/features";
export { generate } from "./programs/generate/generate";
export { generateSmall } from "./programs/generate/small";
export type { LayerClasses } from "./programs/layers";
export { listing } from "./programs/listing";
export { examine, type Failure, type Setup } from "./programs/oracle";
export { type Program, statementsOf } from "./programs/program";
export type { Contents, Store } from "./programs/store";
export { compareWithTorch, type TorchReport, torchCan } from "./programs/torch/torch";
export { expectRemovable } from "./removers";
export { sample, triesAll } from "./sample";
export { useSoftwareVulkan } from "./software-vulkan";
export { storedCodes } from "./stored-codes";
export { temperedLogSoftmax } from "./tempered-log-softmax";
export { type DigestedTensor, digestOf, isDigestOf } from "./torch-calls/digest";
export { pathsSuite } from "./torch-calls/paths";
export { torchPython, withoutTorch } from "./torch-calls/python";
export { storedSuite } from "./torch-calls/stored-calls";
export { type Sweep, sweepSuite } from "./torch-calls/sweep";
export {
  askTorch,
  type CallInput,
  type CheckOptions,
  expectAnswer,
  leavesOf,
  type TorchAnswer,
  type TorchCall,
} from "./torch-calls/torch-calls";
export { jumpsAtZero, rankErrors, rawErrors, spoil, withUndefined } from "./wrong-arguments";
