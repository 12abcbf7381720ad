// All unit tests, for one bundle.

import "./outbox.test.ts";
import "./text.test.ts";
