/** `prepack` of each published package, in its folder: what was not built is not packed. */
import { existsSync, readFileSync } from "node:fs";

const { name, main, types, bin = {}, exports, files } = JSON.parse(readFileSync("package.json", "utf8"));
/** @param {object | string} each @returns {string[]} */
const paths = (each) => (typeof each === "string" ? [each] : Object.values(each).flatMap(paths));
const shipped = files.filter((/** @type {string} */ file) => !file.startsWith("!") && file !== "CHANGELOG.md");
const missing = paths([main, types ?? [], bin, exports ?? [], shipped]).find((path) => !existsSync(path));
if (missing !== undefined) {
  const cure = exports ? `Run npx nx build ${name}` : "Build its binary, or place it";
  console.error(`[prepack] ${name} must be built, got no ${missing}. ${cure}.`);
  process.exitCode = 1;
}
