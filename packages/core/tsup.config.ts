import { buildOf } from "../../tools/tsup";

export default buildOf(["src/index.ts", "src/schedules/index.ts", "src/backend.ts", "src/optimizer/rules.ts"]);
