/** `npm run pictures`: makes the pictures of the README and the site from the real pages and the bench's last result. */
import { fileURLToPath } from "node:url";
import { buildSite } from "../docs/build.mjs";
import { drawBenchmark } from "./benchmark";
import { photographDemos } from "./demos";
import { filmDigits } from "./digits";
import { drawRanks } from "./ranks";

const inRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const folder = inRoot("docs/pictures");
drawBenchmark(folder, inRoot("runs/pictures/benchmark.json"));
drawRanks(folder);
await filmDigits(folder);
const site = inRoot("runs/pictures/site");
await buildSite(site);
await photographDemos(site, folder);
