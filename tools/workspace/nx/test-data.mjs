/** Leaves out of built packages what ops' definitions say for tests and documentation alone: every page would load it. */
import { readFileSync } from "node:fs";
import ts from "typescript";

/** By the function that takes a definition; of a primitive it is all. @type {Record<string, readonly string[]>} */
const FOR_TESTS = {
  defineOp: ["torch", "domain", "inputs"],
  defineWideOp: ["torch", "domain"],
  defineRuleOp: ["torch", "domain"],
  defineFunction: ["torch", "domain", "arguments"],
};

/** The same source with blanks in their places, so that positions stay. @param {string} source */
function withoutTestData(source) {
  /** @type {[start: number, end: number][]} */
  const cuts = [];
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isCallExpression(node) && node.expression.getText() === "definePrimitive") {
      const [, call] = node.arguments;
      if (call) cuts.push([node.getStart(), call.getStart()], [call.end, node.end]);
      return;
    }
    if (ts.isCallExpression(node) && node.expression.getText() in FOR_TESTS) {
      const names = FOR_TESTS[node.expression.getText()] ?? [];
      for (const object of node.arguments.filter(ts.isObjectLiteralExpression))
        for (const each of object.properties)
          if (names.includes(each.name?.getText() ?? ""))
            // With the comma behind it.
            cuts.push([each.getStart(), each.end + (source[each.end] === "," ? 1 : 0)]);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("op.ts", source, ts.ScriptTarget.Latest, true));
  const blank = (/** @type {string} */ text) => text.replace(/\S/g, " ");
  return cuts.reduceRight((text, [a, b]) => text.slice(0, a) + blank(text.slice(a, b)) + text.slice(b), source);
}

/** @type {import("esbuild").Plugin} */
export const testDataLeftOut = {
  name: "definitions without test data",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]core[\\/]src[\\/](ops[\\/].*|views)\.ts$/ }, ({ path }) => ({
      contents: withoutTestData(readFileSync(path, "utf8")),
      loader: "ts",
    }));
  },
};
