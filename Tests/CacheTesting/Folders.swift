import Glibc
import ImgdlCache

/// With all that is in it; links are not followed.
package func removeFolder(_ path: String) {
    for name in Folder.names(in: path) {
        let inner = "\(path)/\(name)"
        var status = stat()
        if lstat(inner, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { removeFolder(inner) } else { unlink(inner) }
    }
    rmdir(path)
}
