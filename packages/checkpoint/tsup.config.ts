import { buildOf } from "../../tools/tsup";

export default buildOf(
  {
    index: "src/index.ts",
    planner: "src/planner.ts",
    s3: "src/s3.ts",
    cli: "src/command/cli.ts",
    "platform/node": "src/platform/node.ts",
    "platform/browser": "src/platform/browser.ts",
  },
  // Chosen where the package is used, by the conditions in package.json.
  { external: ["#platform"] },
);
