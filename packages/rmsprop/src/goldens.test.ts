// RMSprop against PyTorch 2.13.
import { goldenSuite } from "@opt/testkit";
import { RMSprop } from "./rmsprop";

goldenSuite({ name: "js", optimizers: { RMSprop } });
