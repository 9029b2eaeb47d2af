# For the scripts that train: the beginning of a config whose steps take milliseconds.
#   tiny_config DRAWINGS
tiny_config() {
  cat <<END
[data]
path = "$1"
workers = 1
[input]
height = 32
width = 32
[network]
name = "densenet_tiny"
END
}
