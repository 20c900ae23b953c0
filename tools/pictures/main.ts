/** `npm run pictures`: makes the pictures of the README and the site from the real page and the bench's last result. */
import { fileURLToPath } from "node:url";
import { drawBenchmark } from "./benchmark";
import { filmDigits } from "./digits";

const inRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const folder = inRoot("docs/pictures");
drawBenchmark(folder, inRoot("runs/pictures/benchmark.json"));
await filmDigits(folder);
