/** What a save needs once it has begun. It is loaded then, so that pages stay small. */
export { agree, checkSlices, describeTensor } from "./ranks/agreement";
export { agreedValues, sayValues } from "./ranks/values";
export { assembleManifest, checkNotCopies, compareReplicas } from "./shards/assemble";
export { executeSave } from "./shards/execute";
export { planSave } from "./shards/plan";
export { newAttempt } from "./step/owner";
export { StepFolder } from "./step/step-folder";
