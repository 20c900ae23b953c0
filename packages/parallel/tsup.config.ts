import { buildOf } from "../../tools/tsup";

export default buildOf({ index: "src/index.ts", cli: "src/local/cli.ts" });
