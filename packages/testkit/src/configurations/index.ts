/** Training runs that are drawn from seeds, and what must hold of them. Nothing here needs a test runner: ranks import it. */
export { Random } from "../numbers/random";
export { REASONS, type Reason, reasonsOf } from "./combines";
export {
  type Configuration,
  callsClosure,
  EPOCHS,
  isFit,
  type Phase,
  PLANTED,
  ranksOf,
  STEP_SAMPLES,
  samplesOf,
  stepsOf,
  textOf,
} from "./configuration";
export { type Drawn, draw, type OptimizerOptions } from "./draw";
export { faultOf, type RankError, type Told } from "./fault";
export { amplified, difference, type Outcome, promiseOf } from "./promise";
export { smaller, smallest } from "./shrink";
export { cellsOf, pageOf } from "./table";
