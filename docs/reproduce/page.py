"""The page of all tables, made from the folders of results: page.py [FOLDER], which is `reproduce` by default."""

import sys
from importlib import import_module
from pathlib import Path

NAMES = ("cold_start", "ablation", "few_shot", "emergence", "recursion", "baselines", "pools", "model_size")
INTRO = """# The paper's tables, beside ours

After this page you know which findings of the paper hold in the gym. **Workers are simulated, and the Conductor \
has 15 million weights**: no figure under *here* says anything about real models. [How](README.md).
"""

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "reproduce")
    tables = [table for table in (import_module(name).TABLE for name in NAMES) if (folder / table.name).is_dir()]
    parts = [INTRO, *(table.text(folder / table.name) for table in tables)]
    Path(__file__).with_name("results.md").write_text("\n".join(parts), encoding="utf-8")
