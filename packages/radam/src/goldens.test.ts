// RAdam against PyTorch 2.13.
import { goldenSuite } from "@opt/testkit";
import { RAdam } from "./radam";

goldenSuite({ name: "js", optimizers: { RAdam } });
