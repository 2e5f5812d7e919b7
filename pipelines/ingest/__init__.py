"""From files to events: find the inputs, recognise each by its content, keep what it says, quarantine what cannot be read.

inputs        folders, files, .zip, .gz, git repositories: bounded bytes with a virtual path
values        the values in a file: JSON (`json_text`), YAML (`yaml_text`), CSV (`tabular`), what formats take apart
sides         what lies beside records and tells more of them: run.json, shiftlog.yaml (`declarations`), meta_env.json
formats       registry of benchmark record formats: one module each in `tools`, one line here; the contract is `reading`
assembling    a reading from what a record tells and what is declared
mapping       many records at once: `columns`, `parts`, `matrix`, `singles`
files         one chunk of files to rows of the log; `results`, `run_facts`, `runs`, `origins`, `excerpts`
intake        the plan: which input is what, events out, a summary
catalogue     what is read, as text (`metrics`: the definitions)
"""
