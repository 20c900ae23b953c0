import { buildOf } from "../../tools/tsup";

export default buildOf(["src/index.ts", "src/worker.ts"]);
